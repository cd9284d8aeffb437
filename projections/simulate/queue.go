package simulate

import "time"

// step is something to happen.
type step struct {
	at    time.Time
	order int
	do    func()
}

// queue is a heap of steps by time, then by order.
type queue []step

func (q queue) Len() int           { return len(q) }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(step)) }
func (q queue) Less(i, j int) bool { return q[i].before(q[j]) }

func (q *queue) Pop() any {
	old := *q
	last := old[len(old)-1]
	old[len(old)-1] = step{}
	*q = old[:len(old)-1]
	return last
}

func (s step) before(o step) bool {
	if s.at.Equal(o.at) {
		return s.order < o.order
	}
	return s.at.Before(o.at)
}
