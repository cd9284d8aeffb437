package sqlite

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"

	"mcpledger/events"
)

// MaxLineBytes bounds a line of an export, and so the memory an import needs.
const MaxLineBytes = 64 << 20

// ImportOptions says what an import records of itself.
type ImportOptions struct {
	Now    func() time.Time // required
	Source string           // of the log.imported event; required
	From   string           // where the export came from, such as its file's name
}

// Import puts an export of a whole log into the empty log in dir, all of it or, after
// any error, nothing. Each event keeps its place, its columns and its hash; after
// the last one comes a log.imported, which is returned. So a second export is the
// first, then that event, and with a span that ends before it the very same bytes.
//
// A line that is not what Export wrote gives ErrDamagedExport with its number, a log
// that has events ErrNotEmpty; else errors are those of Open.
func Import(ctx context.Context, dir string, r io.Reader, opts ImportOptions) (events.LogImported, error) {
	if opts.Now == nil || opts.Source == "" {
		return events.LogImported{}, errors.New("import: ImportOptions.Now or Source is missing")
	}
	h, err := hold(ctx, dir)
	if err != nil {
		return events.LogImported{}, fmt.Errorf("import: %w", err)
	}
	imported, err := importInto(ctx, h.store, r, opts)
	if err := errors.Join(err, h.close()); err != nil {
		return events.LogImported{}, fmt.Errorf("import into %s: %w", dir, err)
	}
	return imported, nil
}

func importInto(ctx context.Context, s *store, r io.Reader, opts ImportOptions) (events.LogImported, error) {
	if s.head.sequence > 0 {
		return events.LogImported{}, fmt.Errorf("%w: the log has %d events", ErrNotEmpty, s.head.sequence)
	}
	if err := s.begin(); err != nil {
		return events.LogImported{}, explain(err)
	}
	im := &importer{store: s, in: bufio.NewReaderSize(r, 1<<16), contents: newContentCache(defaultCacheBytes)}
	err := im.run(ctx)
	var imported events.LogImported
	if err == nil {
		imported, err = im.record(opts)
	}
	if err == nil {
		err = s.commit()
	}
	if err != nil {
		s.rollback()
		return events.LogImported{}, explain(err)
	}
	return imported, nil
}

// importer reads an export into a store's open transaction.
type importer struct {
	store *store
	in    *bufio.Reader
	line  int // the number of the line read last, from 1

	pending  []events.Content // read, and not yet referred to
	contents *contentCache
	ended    bool
}

// record appends the event that tells of the import.
func (im *importer) record(opts ImportOptions) (events.LogImported, error) {
	head := im.store.head.headOf()
	imported := events.LogImported{From: opts.From, First: min(1, head.Sequence), Last: head.Sequence, Hash: head.Hash}
	id, err := uuid.NewV7()
	if err != nil {
		return imported, err
	}
	now := opts.Now()
	var p prepared
	err = p.prepare(events.Event{
		ID: id.String(), Source: opts.Source, Type: events.TypeLogImported,
		Time: now, DataVersion: 1, Data: imported,
	})
	if err != nil {
		return imported, err
	}
	p.recordedAt = now.UnixNano()
	_, err = im.store.add(&p)
	return imported, err
}

func (im *importer) run(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		text, err := im.next()
		if errors.Is(err, io.EOF) {
			if !im.ended {
				return fmt.Errorf("%w: it is cut after line %d", ErrDamagedExport, im.line)
			}
			return nil
		}
		if err == nil {
			err = im.take(text)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", im.line, err)
		}
	}
}

// next returns the next line, io.EOF after the last.
func (im *importer) next() ([]byte, error) {
	var line []byte
	im.line++
	for {
		part, err := im.in.ReadSlice('\n')
		if len(line)+len(part) > MaxLineBytes {
			return nil, damagedExport("it is longer than %d bytes", MaxLineBytes)
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0:
			return nil, damagedExport("it is cut")
		default:
			im.line--
			return nil, err
		}
	}
}

// take deals with one line.
func (im *importer) take(text []byte) error {
	var line exportLine
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&line); err != nil {
		return damagedExport("%v", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return damagedExport("more follows the line's object")
	}
	switch {
	case im.ended:
		return damagedExport("the export ended before it")
	case (im.line == 1) != (line.Export != nil):
		return damagedExport("the first line, and no other, is the export's header")
	case line.Export != nil:
		if line.Export.Format != exportFormat {
			return fmt.Errorf("%w: format %d, this program knows %d", events.ErrNewer, line.Export.Format, exportFormat)
		}
		if line.Export.First != 1 {
			return damagedExport("the export begins at event %d; only a whole log can be imported", line.Export.First)
		}
		return nil
	case line.Content != nil:
		return im.content(line.Content)
	case line.Event != nil:
		return im.event(line.Event)
	case line.End != nil:
		return im.end(line.End)
	}
	return damagedExport("it is empty")
}

func (im *importer) content(c *exportContent) error {
	body := c.body()
	if events.ContentHash(body) != c.Hash {
		return damagedExport("the content does not match its hash %s", c.Hash)
	}
	im.pending = append(im.pending, events.Content{Hash: c.Hash, Body: body})
	return nil
}

func (im *importer) event(x *exportEvent) error {
	var p prepared
	p.set(x.entry(), im.pending)
	if want := im.store.head.sequence + 1; p.sequence != want {
		return damagedExport("it has event %d, expected was %d", p.sequence, want)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, p.data); err != nil || !bytes.Equal(compact.Bytes(), p.data) {
		return damagedExport("the data of event %d is not compact JSON", p.sequence)
	}
	refs := map[string]bool{}
	for _, ref := range events.References(p.data) {
		refs[ref] = true
	}
	for _, c := range im.pending {
		if !refs[c.Hash] {
			return damagedExport("event %d does not refer to the content %s before it", p.sequence, c.Hash)
		}
	}
	e, err := p.entry.event(im.resolve)
	if err == nil {
		err = events.Validate(e)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamagedExport, err)
	}
	first, err := im.store.add(&p)
	switch {
	case isConflict(err) || err == nil && first != x.Sequence:
		return damagedExport("event %d has the source and id of an earlier one", x.Sequence)
	case err != nil:
		return err
	case hexText(p.hash) != x.Hash:
		return damagedExport("event %d is not what was exported: its content and the hash before it give another hash", x.Sequence)
	}
	im.pending = nil
	return nil
}

// resolve returns a content that was imported.
func (im *importer) resolve(hash string) (*events.Loaded, error) {
	for _, c := range im.pending {
		if c.Hash == hash {
			return events.Load(c.Body), nil
		}
	}
	if content, ok := im.contents.get(hash); ok {
		return content, nil
	}
	body, err := selectContent(background, im.store.conn, hash)
	if err != nil {
		return nil, err
	}
	return im.contents.put(hash, body), nil
}

func (im *importer) end(end *exportTrailer) error {
	head := im.store.head
	switch {
	case len(im.pending) > 0:
		return damagedExport("no event refers to the content %s", im.pending[0].Hash)
	case end.Events != head.sequence || end.Hash != head.headOf().Hash:
		return damagedExport("it ends an export of %d events with hash %q, read were %d with hash %q",
			end.Events, end.Hash, head.sequence, head.headOf().Hash)
	}
	im.ended = true
	return nil
}

func damagedExport(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamagedExport, fmt.Sprintf(format, args...))
}
