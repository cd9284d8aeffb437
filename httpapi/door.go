package httpapi

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"
)

// door lets in requests by the name they call the service and the page they come
// from, whatever credentials they bring. A page elsewhere whose name was rebound to
// this machine still calls it by that name, and is refused.
type door struct {
	hosts   map[string]bool
	origins map[string]bool
}

func newDoor(cfg Config) (door, error) {
	d := door{hosts: map[string]bool{}, origins: map[string]bool{}}
	for _, h := range cfg.AllowedHosts {
		d.hosts[hostName(h)] = true
	}
	for _, o := range cfg.AllowedOrigins {
		u, err := url.Parse(o)
		if err != nil || u.Scheme == "" || u.Host == "" || u.Path != "" {
			return door{}, fmt.Errorf("allowed origin %q: an origin such as https://ops.example is wanted", o)
		}
		d.origins[strings.ToLower(o)] = true
	}
	return d, nil
}

// check is the middleware. It also answers the questions browsers ask beforehand for
// pages of the allowed origins.
func (d door) check(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		if !d.knowsHost(r.Host) {
			return refuse(codeHostNotAllowed, "start the service with --allowed-host to let it go by this name")
		}
		origins := r.Header.Values("Origin")
		if len(origins) == 0 {
			return next(c)
		}
		if len(origins) > 1 || !d.admits(origins[0], r.Host) {
			return refuse(codeOriginNotAllowed, "start the service with --allowed-origin to let pages of this origin ask")
		}
		if !d.origins[strings.ToLower(origins[0])] {
			return next(c)
		}
		h := c.Response().Header()
		h.Set("Access-Control-Allow-Origin", origins[0])
		h.Set("Access-Control-Expose-Headers", "ETag, Ledger-Sequence, Link, Mcp-Session-Id")
		h.Add("Vary", "Origin")
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, DELETE")
			h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, If-Match, If-None-Match, Last-Event-ID, Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, Mcp-Name")
			h.Set("Access-Control-Max-Age", "600")
			return c.NoContent(http.StatusNoContent)
		}
		return next(c)
	}
}

func (d door) knowsHost(host string) bool {
	name := hostName(host)
	return IsLoopback(name) || d.hosts[name]
}

// admits reports whether pages of an origin may ask: those of loopback, those
// allowed, and our own.
func (d door) admits(origin, host string) bool {
	if d.origins[strings.ToLower(origin)] {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") {
		return false
	}
	return strings.EqualFold(u.Host, host) || IsLoopback(hostName(u.Host))
}

// sameOrigin reports whether a request comes from a page of the service itself.
func sameOrigin(r *http.Request) bool {
	u, err := url.Parse(r.Header.Get("Origin"))
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host)
}

// fromHere reports whether a request was made on this machine, and not passed on
// from elsewhere by a proxy.
func fromHere(r *http.Request) bool {
	for _, h := range []string{"Forwarded", "X-Forwarded-For", "X-Real-Ip", "Via"} {
		if r.Header.Get(h) != "" {
			return false
		}
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && peer.Addr().Unmap().IsLoopback() && IsLoopback(hostName(r.Host))
}

// hostName returns the lower-cased name of a host with or without port.
func hostName(host string) string {
	name := host
	if n, _, err := net.SplitHostPort(host); err == nil {
		name = n
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	return strings.ToLower(strings.TrimSuffix(name, "."))
}

// IsLoopback reports whether a host, in lower case and without port, is reached on this
// machine alone: it is "localhost" or an address of loopback.
func IsLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
