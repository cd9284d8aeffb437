package gateway_test

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestWhatNobodyReadsIsHeldInBounds(t *testing.T) {
	for story, g := range map[string]*script{"many": gossip(5000, 0), "large": gossip(500, 20_000)} {
		t.Run(story, func(t *testing.T) {
			w := newWorld(t)
			w.gossips(g)
			c := w.raw("/gossip")
			c.result("resources/subscribe", `{"uri":"file:///"}`)
			c.send(callTalk)
			stream, _ := c.streamOf("")
			heard := hears(t, stream, `"uri":"file:///"`) // the whole, in place of the parts
			size := 0
			for _, message := range heard {
				size += len(message)
			}
			if len(heard) < 10 || len(heard) > 1100 || size > 2<<20 {
				t.Errorf("%d messages of %d bytes were held", len(heard), size)
			}
		})
	}
}

func TestAClientThatReadsNothingIsCutOffAndMayComeBack(t *testing.T) {
	w := newWorld(t)
	w.options.StallTimeout = 2 * time.Second // which is also for the client that comes back and reads
	w.gossips(gossip(100, 20_000))
	address := w.narrowly()
	c := w.raw("/gossip")
	c.result("resources/subscribe", `{"uri":"file:///"}`)
	w.deaf(address, http.MethodGet, "/mcp/gossip", "", http.Header{"Mcp-Session-Id": {c.session}})
	w.deaf(address, http.MethodPost, "/mcp/gossip",
		`{"jsonrpc":"2.0","id":9,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["file:///"]},`+modernMeta+`}}`,
		http.Header{"Mcp-Protocol-Version": {string(modern)}, "Mcp-Method": {"subscriptions/listen"}})
	eventually(t, "both streams are open", func() bool {
		_, streams := w.gateway.UnderWay()
		return streams == 2
	})
	eventually(t, "both streams are cut", func() bool {
		c.send(callTalk)
		_, streams := w.gateway.UnderWay()
		return streams == 0
	})
	stream, _ := c.streamOf("")
	hears(t, stream, everything()...)
}

func TestAnAnswerThatNobodyReadsIsGivenUp(t *testing.T) {
	w := newWorld(t)
	w.options.StallTimeout = 500 * time.Millisecond
	s := gossip(0, 0)
	s.answers["tools/call talk"] = `{"content":[{"type":"text","text":"` + strings.Repeat("x", 12<<20) + `"}]}`
	w.gossips(s)
	address := w.narrowly()
	c := w.raw("/gossip")
	for _, id := range []string{"1", "2", "3"} {
		w.deaf(address, http.MethodPost, "/mcp/gossip", strings.Replace(callTalk, "7", id, 1), http.Header{"Mcp-Session-Id": {c.session}})
	}
	eventually(t, "all three were called", func() bool { return len(s.all()) == 3 })
	eventually(t, "all three are given up", func() bool {
		requests, _ := w.gateway.UnderWay()
		return requests == 0
	})
}

func TestWhatHappensWhileNoStreamIsOpenIsToldOnTheNext(t *testing.T) {
	w := newWorld(t)
	w.gossips(gossip(3, 0))
	c := w.raw("/gossip")
	c.result("resources/subscribe", `{"uri":"file:///"}`)
	c.send(callTalk)
	c.send(callTalk) // of the same three
	stream, end := c.streamOf("")
	if heard := hears(t, stream, "file:///2"); len(heard) != 3 {
		t.Errorf("heard %q", heard)
	}
	end()
	c.send(callTalk)
	stream, _ = c.streamOf("3") // all that was sent
	if heard := hears(t, stream, "file:///2"); len(heard) != 3 {
		t.Errorf("after all was read: %q", heard)
	}
}

// A connection may take events along when it breaks. A client that says which it has read
// last hears of all that it may have missed.
func TestAClientThatSaysWhatItReadLastHearsOfTheRest(t *testing.T) {
	w := newWorld(t)
	w.gossips(gossip(3, 0))
	c := w.raw("/gossip")
	c.result("resources/subscribe", `{"uri":"file:///"}`)
	stream, end := c.streamOf("")
	c.send(callTalk)
	hears(t, stream, "file:///2")
	end()
	stream, _ = c.streamOf("1")
	hears(t, stream, everything()...)
}

func TestTheStreamOpenedLastHearsWhatThereIs(t *testing.T) {
	w := newWorld(t)
	w.gossips(gossip(1, 0))
	c := w.raw("/gossip")
	c.result("resources/subscribe", `{"uri":"file:///"}`)
	first, _ := c.streamOf("")
	second, end := c.streamOf("")
	c.send(callTalk)
	hears(t, second, "file:///0")
	end()
	eventually(t, "the second stream has ended", func() bool {
		_, streams := w.gateway.UnderWay()
		return streams == 1
	})
	c.send(callTalk)
	if heard := hears(t, first, "file:///0"); len(heard) != 1 {
		t.Errorf("the first stream: %q", heard)
	}
	for range 4 {
		c.streamOf("")
	}
	if _, err := first.ReadString('\x00'); err != io.EOF {
		t.Errorf("the oldest of five streams goes on: %v", err)
	}
}

// A stream that is to end while nobody reads it ends later than those behind it.
func TestASessionHasFewStreamsThoughOneIsNotRead(t *testing.T) {
	w := newWorld(t)
	w.gossips(gossip(100, 20_000))
	c := w.raw("/gossip")
	c.result("resources/subscribe", `{"uri":"file:///"}`)
	w.deaf(w.narrowly(), http.MethodGet, "/mcp/gossip", "", http.Header{"Mcp-Session-Id": {c.session}})
	eventually(t, "the first stream is open", func() bool {
		_, streams := w.gateway.UnderWay()
		return streams == 1
	})
	c.send(callTalk)
	ended := make(chan error, 6)
	for range 6 {
		stream, _ := c.streamOf("")
		go func() {
			_, err := stream.ReadString('\x00')
			ended <- err
		}()
	}
	for range 2 {
		if err := <-ended; !errors.Is(err, io.EOF) {
			t.Errorf("of six streams that are read more than four go on: %v", err)
		}
	}
}

func TestSubscriptionsAreBounded(t *testing.T) {
	w := newWorld(t)
	w.gossips(gossip(0, 0))
	c := w.raw("/gossip")
	long := `{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"` + strings.Repeat("x", 9<<10) + `"}}`
	if _, _, body := c.send(long); !strings.Contains(string(body), "-32602") {
		t.Errorf("a long address: %s", body)
	}
	for i := range 1000 {
		c.result("resources/subscribe", `{"uri":"file:///`+strconv.Itoa(i)+`"}`)
	}
	if _, _, body := c.send(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"file:///more"}}`); !strings.Contains(string(body), "-32600") {
		t.Errorf("one too many: %s", body)
	}
}

func TestEventsThatCannotBeResumedHaveNoIDs(t *testing.T) {
	w := newWorld(t)
	w.gossips(gossip(1, 0))
	var said strings.Builder
	stream := bufio.NewReader(io.TeeReader(w.listen("/gossip", `{"resourceSubscriptions":["file:///"]}`), &said))
	hears(t, stream, "acknowledged")
	w.raw("/gossip").send(callTalk)
	hears(t, stream, "file:///0")
	if strings.Contains(said.String(), "\nid:") {
		t.Errorf("the stream: %s", said.String())
	}
}

// A token may be revoked, or expire, while a stream is open.
func TestAStreamTellsNothingMoreToAClientThatMayHearNoMore(t *testing.T) {
	w := newWorld(t)
	var revoked atomic.Bool
	w.options.Allowed = func(*http.Request) bool { return !revoked.Load() }
	w.gossips(gossip(1, 0))
	c := w.raw("/gossip")
	c.result("resources/subscribe", `{"uri":"file:///"}`)
	session, _ := c.streamOf("")
	stateless := bufio.NewReader(w.listen("/gossip", `{"resourceSubscriptions":["file:///"]}`))
	c.send(callTalk)
	hears(t, session, "file:///0")
	hears(t, stateless, "file:///0")
	revoked.Store(true)
	c.send(callTalk)
	for name, stream := range map[string]*bufio.Reader{"of a session": session, "of 2026-07-28": stateless} {
		rest, err := io.ReadAll(stream)
		if err != nil || strings.Contains(string(rest), "file:///0") {
			t.Errorf("the stream %s: %q, %v", name, rest, err)
		}
	}
}
