package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mcpledger/discovery"
	"mcpledger/httpapi/api"
	"mcpledger/projections"
)

func (p *program) callCommand() *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "call SERVER TOOL [JSON]",
		Short: "Call a tool of a server and print what it says",
		Long: "Call a tool of a server, as tools lists it, through the running service, which records the\n" +
			"call, and print the texts of the result; --json prints the whole answer. The arguments are a\n" +
			"JSON object, @FILE for one in a file, or - for one on standard input; none if left out. The\n" +
			"exit code is 0 when the call succeeded and 1 when it failed or was refused, with the reason on\n" +
			"standard error.",
		ValidArgsFunction: p.completeServers(1),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 || len(args) > 3 {
				return usagef("%s wants a server, a tool and perhaps its arguments: %s", cmd.CommandPath(), cmd.UseLine())
			}
			return nil
		},
	}
	cmd.Flags().Var(durationOf(&timeout, 0, "give a duration such as 30s"), "timeout", "for what `duration` the call may go without an answer or progress; 0 for the entry's, else a minute")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		request := api.CallRequest{TimeoutMs: timeout.Milliseconds()}
		if len(args) == 3 {
			var err error
			if request.Arguments, err = p.callArguments(args[2]); err != nil {
				return err
			}
		}
		return p.withService(cmd, func(c *client) error {
			path := "/api/servers/" + url.PathEscape(args[0]) + "/tools/" + url.PathEscape(args[1]) + "/call"
			var raw json.RawMessage
			if err := c.post(cmd.Context(), path, nil, request, &raw); err != nil {
				return err
			}
			return p.printCall(path, raw)
		})
	}
	return cmd
}

// callArguments returns the JSON object that an argument of the command line gives.
func (p *program) callArguments(given string) (json.RawMessage, error) {
	text := []byte(given)
	var err error
	if given == "-" {
		text, err = io.ReadAll(p.stdin)
	} else if file, named := strings.CutPrefix(given, "@"); named {
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, usagef("the arguments: %v", err)
	}
	if text = bytes.TrimSpace(text); !json.Valid(text) || text[0] != '{' {
		return nil, usagef(`the arguments are no JSON object; give them like '{"city":"Oslo"}', @FILE or -`)
	}
	return text, nil
}

// printCall prints what became of a call. One that gave no good result is an error
// that says why.
func (p *program) printCall(path string, raw json.RawMessage) error {
	var answer api.CallAnswer
	if err := json.Unmarshal(raw, &answer); err != nil {
		return unreadable(path, err)
	}
	if p.json {
		if err := p.printJSON(raw); err != nil {
			return err
		}
	}
	said, err := resultText(answer.Result)
	if err != nil {
		return unreadable(path, err)
	}
	if answer.Outcome == projections.OutcomeSucceeded {
		if !p.json && said != "" {
			_, err = fmt.Fprintln(p.stdout, printable(said))
		}
		return err
	}
	return &exitError{code: exitFailed, message: whyNoResult(answer, said, p.aim)}
}

// whyNoResult says in one sentence why a call gave no good result; said is the text of
// a result that came all the same.
func whyNoResult(answer api.CallAnswer, said, aim string) string {
	what := fmt.Sprintf("the call of %s on %s", oneLine(answer.Tool), oneLine(string(answer.Server)))
	f := answer.Failure
	if f == nil {
		return fmt.Sprintf("%s %s", what, answer.Outcome)
	}
	if said == "" {
		said = f.Detail
	}
	code := strings.ReplaceAll(f.Code, "_", " ")
	if answer.Outcome == projections.OutcomeRefused {
		what += " was refused"
	} else {
		what += " failed"
	}
	why := fmt.Sprintf("%s, %s: %s", what, code, oneLine(strings.TrimSpace(said)))
	if f.Code == discovery.CodeToolNotFound {
		why += fmt.Sprintf("; run \"%s\" for those there are", lineAbout("tools", oneLine(string(answer.Server)), aim))
	}
	if f.RetryAfterMs > 0 && f.Code != discovery.CodeSkipped { // whose detail has the time
		why += "; try again in " + milliseconds(f.RetryAfterMs)
	}
	return why
}

// resultText returns what a result says, for people: its texts, what else it holds by
// name, and its structured content if that is all there is.
func resultText(raw json.RawMessage) (string, error) {
	var result struct {
		Content []struct {
			Type     string `json:"type"`
			Text     string `json:"text"`
			MIMEType string `json:"mimeType"`
			URI      string `json:"uri"`
		} `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
	}
	if len(raw) == 0 {
		return "", nil
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return "", err
	}
	var parts []string
	for _, c := range result.Content {
		if c.Type == "text" {
			parts = append(parts, strings.TrimSuffix(c.Text, "\n"))
			continue
		}
		parts = append(parts, "["+strings.Join(strings.Fields(c.Type+" "+c.MIMEType+" "+c.URI), " ")+"]")
	}
	if len(parts) == 0 {
		return string(result.Structured), nil
	}
	return strings.Join(parts, "\n"), nil
}

// printable keeps the lines of a text and replaces whatever else would move a
// terminal's cursor.
func printable(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		cells := strings.Split(strings.TrimSuffix(line, "\r"), "\t")
		for j := range cells {
			cells[j] = oneLine(cells[j])
		}
		lines[i] = strings.Join(cells, "\t")
	}
	return strings.Join(lines, "\n")
}
