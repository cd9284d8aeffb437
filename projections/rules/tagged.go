package rules

import "strings"

// untagged returns a text without the tag that each of its lines begins with, as what runs
// several programs puts one before all that they print: "[crm] " or "crm-1  | ". Where a text
// was cut, the first line may have lost its own, and of the last there may be a part of the
// tag alone. A tag in brackets may be the program's own as well, before each of its records,
// which then are left as they are: what it prints has no indented lines.
func untagged(text string) string {
	first, rest, more := strings.Cut(text, "\n")
	if !more {
		return text
	}
	second, _, _ := strings.Cut(rest, "\n")
	tag := tagOf(second)
	if tag == "" {
		return text
	}
	wrapped := tag[0] != '['
	var b strings.Builder
	b.WriteString(strings.TrimPrefix(first, tag))
	for line := range strings.SplitSeq(rest, "\n") {
		said, ok := strings.CutPrefix(line, tag)
		if !ok && !strings.HasPrefix(tag, strings.TrimRight(line, " \r"+ellipsis)) { // an empty line may lack its end
			return text
		}
		b.WriteByte('\n')
		if ok {
			b.WriteString(said)
			wrapped = wrapped || said != "" && (said[0] == ' ' || said[0] == '\t')
		}
	}
	if !wrapped {
		return text
	}
	return b.String()
}

// tagOf returns what a line begins with if that may stand for a program; empty if not: a
// level says what the line is, and a number is no name.
func tagOf(line string) string {
	head := line[:min(len(line), maxTagBytes)]
	name, end := head, " | "
	if strings.HasPrefix(head, "[") {
		name, end = head[1:], "] "
	}
	name, _, ok := strings.Cut(name, end)
	name = strings.TrimRight(name, " ")
	if !ok || strings.Trim(name, tagBytes) != "" || strings.Trim(name, "0123456789") == "" || levelOf([]byte(name)) != levelNone {
		return ""
	}
	return head[:strings.Index(head, end)+len(end)]
}

// tagBytes are those of the names of programs.
const tagBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:/@-"
