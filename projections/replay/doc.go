// Package replay answers what another rule set would have done with the past: it
// puts two sets through the recorded events and says where they part. It writes
// nothing.
//
// The log holds what one set let happen. Under another, some attempts would not
// have been made, and others would, of which nothing is known. So each side decides
// by its own state, at every opportunity the log recorded:
//
//   - An attempt that the side would have made is folded.
//   - One that falls into a skip of the side is not; it is counted as avoided, with
//     the time it took. A person's attempts, those that a call asked for and the first
//     one of a connection go through whatever the side says.
//   - Attempts after one that the side would not have tried again in its run are
//     avoided, too.
//   - Where the log recorded a skip and the side would have made an attempt, the
//     outcome is unknown: it is counted, and nothing is folded.
//
// Everything else is a fact, and is folded on both sides. Under a single set that
// was active all along, the fold is the live state.
package replay
