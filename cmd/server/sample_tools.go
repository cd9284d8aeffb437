package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// newToolbox returns the MCP server of small everyday tools that the healthy and the
// slow samples run.
func newToolbox(now func() time.Time) *server.MCPServer {
	s := server.NewMCPServer("sample-toolbox", version)
	s.AddTool(
		mcp.NewTool("current_time",
			mcp.WithDescription("Tells the time in a time zone."),
			mcp.WithString("timezone", mcp.Description("IANA name, such as Europe/Berlin; UTC if left out")),
			mcp.WithReadOnlyHintAnnotation(true)),
		mcp.NewTypedToolHandler(func(_ context.Context, _ mcp.CallToolRequest, args struct {
			Timezone string `json:"timezone"`
		}) (*mcp.CallToolResult, error) {
			zone, err := time.LoadLocation(args.Timezone)
			if err != nil {
				return mcp.NewToolResultErrorf("there is no time zone %q", args.Timezone), nil
			}
			return mcp.NewToolResultText(now().In(zone).Format(time.RFC3339)), nil
		}))
	s.AddTool(
		mcp.NewTool("convert_length",
			mcp.WithDescription("Converts a length from one unit to another."),
			mcp.WithNumber("value", mcp.Required()),
			mcp.WithString("from", mcp.Required(), mcp.Enum(lengthUnits...)),
			mcp.WithString("to", mcp.Required(), mcp.Enum(lengthUnits...)),
			mcp.WithReadOnlyHintAnnotation(true)),
		mcp.NewTypedToolHandler(func(_ context.Context, _ mcp.CallToolRequest, args struct {
			Value float64 `json:"value"`
			From  string  `json:"from"`
			To    string  `json:"to"`
		}) (*mcp.CallToolResult, error) {
			from, to := metres[args.From], metres[args.To]
			if from == 0 || to == 0 {
				return mcp.NewToolResultErrorf("the units are %s", strings.Join(lengthUnits, ", ")), nil
			}
			return mcp.NewToolResultText(fmt.Sprintf("%.6g %s", args.Value*from/to, args.To)), nil
		}))
	s.AddTool(
		mcp.NewTool("count_words",
			mcp.WithDescription("Counts the lines, words and characters of a text."),
			mcp.WithString("text", mcp.Required()),
			mcp.WithReadOnlyHintAnnotation(true)),
		mcp.NewStructuredToolHandler(func(_ context.Context, _ mcp.CallToolRequest, args struct {
			Text string `json:"text"`
		}) (wordCount, error) {
			return wordCount{
				Lines:      len(strings.Split(args.Text, "\n")),
				Words:      len(strings.Fields(args.Text)),
				Characters: len([]rune(args.Text)),
			}, nil
		}))
	return s
}

type wordCount struct {
	Lines      int `json:"lines"`
	Words      int `json:"words"`
	Characters int `json:"characters"`
}

var (
	lengthUnits = []string{"mm", "cm", "m", "km", "in", "ft", "yd", "mi"}
	metres      = map[string]float64{
		"mm": 0.001, "cm": 0.01, "m": 1, "km": 1000, "in": 0.0254, "ft": 0.3048, "yd": 0.9144, "mi": 1609.344,
	}
)

// newCalendar returns the MCP server of date tools that is reached over HTTP.
func newCalendar() *server.MCPServer {
	s := server.NewMCPServer("sample-calendar", version)
	s.AddTool(
		mcp.NewTool("weekday",
			mcp.WithDescription("Tells which day of the week a date is."),
			mcp.WithString("date", mcp.Required(), mcp.Description("such as 2026-02-28")),
			mcp.WithReadOnlyHintAnnotation(true)),
		mcp.NewTypedToolHandler(func(_ context.Context, _ mcp.CallToolRequest, args struct {
			Date string `json:"date"`
		}) (*mcp.CallToolResult, error) {
			date, err := time.Parse(time.DateOnly, args.Date)
			if err != nil {
				return mcp.NewToolResultErrorf("%q is no date such as 2026-02-28", args.Date), nil
			}
			return mcp.NewToolResultText(date.Weekday().String()), nil
		}))
	s.AddTool(
		mcp.NewTool("days_between",
			mcp.WithDescription("Counts the days from one date to another."),
			mcp.WithString("from", mcp.Required()),
			mcp.WithString("to", mcp.Required()),
			mcp.WithReadOnlyHintAnnotation(true)),
		mcp.NewTypedToolHandler(func(_ context.Context, _ mcp.CallToolRequest, args struct {
			From string `json:"from"`
			To   string `json:"to"`
		}) (*mcp.CallToolResult, error) {
			from, fromErr := time.Parse(time.DateOnly, args.From)
			to, toErr := time.Parse(time.DateOnly, args.To)
			if fromErr != nil || toErr != nil {
				return mcp.NewToolResultError("dates are written such as 2026-02-28"), nil
			}
			return mcp.NewToolResultText(fmt.Sprint(int(to.Sub(from).Hours() / 24))), nil
		}))
	return s
}
