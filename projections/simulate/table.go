package simulate

import (
	"fmt"
	"strings"
	"time"
)

// Table shows results side by side in Markdown: for each policy and kind of server
// the attempts in vain per server and day, then how late recoveries were noticed,
// the mean and the 95th percentile. The results are of one fleet.
func Table(results []Result) string {
	if len(results) == 0 {
		return ""
	}
	var kinds, recovering []Kind
	for _, k := range results[0].Kinds() {
		if k == Healthy {
			continue
		}
		kinds = append(kinds, k)
		if results[0].Of(k).Recoveries > 0 {
			recovering = append(recovering, k)
		}
	}
	var b strings.Builder
	b.WriteString("Attempts in vain, per server and day:\n\n")
	rows(&b, results, kinds, func(s Summary) string { return fmt.Sprintf("%.2f", s.WastedPerDay) })
	b.WriteString("\nHow late a recovery was noticed, mean and 95th percentile:\n\n")
	rows(&b, results, recovering, func(s Summary) string {
		if s.Recoveries == 0 {
			return fmt.Sprintf("%d never", s.Servers)
		}
		return span(s.Mean) + ", " + span(s.P95)
	})
	return b.String()
}

func rows(b *strings.Builder, results []Result, kinds []Kind, cell func(Summary) string) {
	b.WriteString("| policy |")
	for _, k := range kinds {
		fmt.Fprintf(b, " %s |", k)
	}
	b.WriteString("\n| --- |" + strings.Repeat(" --- |", len(kinds)) + "\n")
	for _, r := range results {
		fmt.Fprintf(b, "| %s |", r.Policy)
		for _, k := range kinds {
			fmt.Fprintf(b, " %s |", cell(r.Of(k)))
		}
		b.WriteString("\n")
	}
}

// span writes a duration for people: "0", "40 s", "12 min", "5 h 20 min".
func span(d time.Duration) string {
	switch d = d.Round(time.Second); {
	case d == 0:
		return "0"
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}
