package httpapi

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"mcpledger/httpapi/api"
	"mcpledger/projections"
)

// metrics are what GET /metrics shows. Numbers about servers are read from the folds
// when they are asked for.
type metrics struct {
	api      *API
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	handler  http.Handler
}

// The metrics that come from the log and its folds. Each server costs one series of each, and
// one more for its state.
var (
	descReady = prometheus.NewDesc("mcpledger_ready",
		"Whether the folds have caught up with the log (1) or not (0).", nil, nil)
	descWritable = prometheus.NewDesc("mcpledger_log_writable",
		"Whether the log could be written the last time (1) or not (0), as on a full disk.", nil, nil)
	descSequence = prometheus.NewDesc("mcpledger_log_sequence",
		"Place in the log of the last event folded.", nil, nil)
	descPassedOver = prometheus.NewDesc("mcpledger_events_passed_over_total",
		"Events of types this version does not know.", nil, nil)
	descShadow = prometheus.NewDesc("mcpledger_shadow_differing_servers",
		"Servers that the shadow rule set sees differently; absent without a shadow.", []string{"set"}, nil)
	descState = prometheus.NewDesc("mcpledger_server_state",
		"1 for the state the server is in.", []string{"server", "state"}, nil)
	descOffered = prometheus.NewDesc("mcpledger_server_tools",
		"Tools the server offers now; 0 when they are not offered.", []string{"server"}, nil)
	descSkipUntil = prometheus.NewDesc("mcpledger_server_skip_until_timestamp_seconds",
		"When the server's skip ends; absent without a skip, 0 for no end.", []string{"server"}, nil)
	descAttempts = prometheus.NewDesc("mcpledger_discovery_attempts_total",
		"Discovery attempts in the log.", []string{"server"}, nil)
	descFailures = prometheus.NewDesc("mcpledger_discovery_failures_total",
		"Discovery attempts in the log that failed.", []string{"server"}, nil)
	descLaunches = prometheus.NewDesc("mcpledger_launches_total",
		"Processes started, by attempts and for calls, by the log.", []string{"server"}, nil)
	descCalls = prometheus.NewDesc("mcpledger_tool_calls_total",
		"Tool calls in the log.", []string{"server"}, nil)
	descCallFailures = prometheus.NewDesc("mcpledger_tool_call_failures_total",
		"Tool calls in the log that failed.", []string{"server"}, nil)
)

func newMetrics(a *API, version string) *metrics {
	m := &metrics{
		api: a,
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mcpledger_http_requests_total", Help: "Requests answered.",
		}, []string{"method", "route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "mcpledger_http_request_duration_seconds", Help: "Time to the whole answer.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 4, 9),
		}, []string{"route"}),
	}
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "mcpledger_build_info", Help: "1; the version is a label.", ConstLabels: prometheus.Labels{"version": version},
	})
	info.Set(1)
	registry := prometheus.NewRegistry()
	registry.MustRegister(m, m.requests, m.seconds, info, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.handler = promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	return m
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descReady, descWritable, descSequence, descPassedOver, descShadow, descState, descOffered, descSkipUntil,
		descAttempts, descFailures, descLaunches, descCalls, descCallFailures,
	} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v int64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	writable := 0.0
	if m.api.unwritable() == "" {
		writable = 1
	}
	gauge(descWritable, writable)
	f, err := m.api.fleetAt(context.Background(), "", "")
	if err != nil {
		gauge(descReady, 0)
		return
	}
	gauge(descReady, 1)
	gauge(descSequence, float64(f.sequence))
	counter(descPassedOver, m.passedOver())
	if shadow, differences := m.api.engine.Shadowed(f.now); shadow != nil {
		gauge(descShadow, float64(len(differences)), shadow.Name())
	}
	for _, v := range f.servers {
		name := string(v.Name)
		tools := 0
		if v.Offered() && v.Catalogue != nil {
			tools = len(v.Catalogue.Names)
		}
		gauge(descState, 1, name, string(v.State))
		gauge(descOffered, float64(tools), name)
		if v.Skip != nil {
			until := int64(0)
			if !v.Skip.Until.IsZero() {
				until = v.Skip.Until.Unix()
			}
			gauge(descSkipUntil, float64(until), name)
		}
		counter(descAttempts, v.Stats.Attempts, name)
		counter(descFailures, v.Stats.Failures, name)
		counter(descLaunches, v.Stats.Launches, name)
		counter(descCalls, v.Stats.Calls, name)
		counter(descCallFailures, v.Stats.CallFailures, name)
	}
}

func (m *metrics) passedOver() (n int64) {
	// An engine that was ready stays so.
	_ = m.api.engine.View(func(s *projections.State) { n = s.PassedOver() })
	return n
}

// knownMethods have a series each; a client can make up others.
var knownMethods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions}

// observe counts and times requests. It stands outermost, so that it sees what was
// answered, problems included. Requests for unknown paths share one route.
func (a *API) observe(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-cache")
		c.Response().Before(func() { // HEAD is answered wherever GET is, which the router does not know
			if allow := h.Get("Allow"); strings.Contains(allow, http.MethodGet) {
				h.Set("Allow", allow+", "+http.MethodHead)
			}
		})
		began := a.now()
		if err := next(c); err != nil {
			c.Error(err)
		}
		route := c.Path()
		if route == "" {
			route = "unknown"
		}
		method := c.Request().Method
		if !slices.Contains(knownMethods, method) {
			method = "other"
		}
		a.metrics.requests.WithLabelValues(method, route, strconv.Itoa(c.Response().Status)).Inc()
		a.metrics.seconds.WithLabelValues(route).Observe(a.now().Sub(began).Seconds())
		return nil
	}
}

// GetMetrics answers GET /metrics.
func (a *API) GetMetrics(context.Context, api.GetMetricsRequestObject) (api.GetMetricsResponseObject, error) {
	return exposition{a.metrics.handler}, nil
}

// exposition is the answer of the Prometheus handler.
type exposition struct{ handler http.Handler }

// VisitGetMetricsResponse writes the metrics.
func (x exposition) VisitGetMetricsResponse(w http.ResponseWriter) error {
	x.handler.ServeHTTP(w, &http.Request{Method: http.MethodGet, Header: http.Header{}})
	return nil
}
