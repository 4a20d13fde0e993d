package neigh

import "time"

// DefaultTimeout is the timeout of a request that names none.
const DefaultTimeout = 500 * time.Millisecond

// The lengths of time the proof rests on. docs/neighbour-proof.md has the
// measurements behind them.
const (
	// selfWindow is how long phase 1 listens. Silence is the good case here, so
	// every clean ADD pays it: long enough for three questions, the last of them
	// with answerTime to be answered. A duplicate on the same switch answers within
	// 1 ms, on a busy host within 5. What comes later is still heard in phase 2.
	selfWindow = 11 * time.Millisecond

	// answerTime is how long phase 1 listens after its last question.
	answerTime = 5 * time.Millisecond

	// quiet is how long no new MAC must have been heard before a phase ends early.
	// Under flux sixteen answers to one question come within 0.2 ms of each other,
	// and within 5 ms in all but the worst of cases when sixteen rails ask at once.
	quiet = 6 * time.Millisecond

	// siblingPause lies between two looks at the setting of a sibling that answers
	// for an own address. Once it has changed there is another round of phase 1.
	siblingPause = 10 * time.Millisecond

	// confirmAfter is when what was found wrong is asked about once more: a pod
	// on the other side that is starting too tunes its rails within milliseconds
	// of creating them, and one that is being deleted stops answering.
	confirmAfter = 50 * time.Millisecond

	// confirmLimit bounds the second round of phase 2.
	confirmLimit = 100 * time.Millisecond

	// repeat is the distance of further questions behind the last of neighbourSends.
	repeat = 400 * time.Millisecond

	// burst questions are sent in each burstGap at most: 256 peers with sixteen
	// rails each would otherwise answer 4096 times at once.
	burst    = 32
	burstGap = 2 * time.Millisecond

	// busyTries is how often one question is tried again when the transmit queue
	// is full, first after busyPause, then twice as long each time: 62 ms in all.
	busyTries = 5
	busyPause = 2 * time.Millisecond
)

var (
	// selfSends are the times of phase 1's questions. Sixteen rails attached at
	// once lose single frames.
	selfSends = []time.Duration{0, 3 * time.Millisecond, 6 * time.Millisecond}

	// neighbourSends are the times of phase 2's questions to whoever has not
	// answered.
	neighbourSends = []time.Duration{
		0, 50 * time.Millisecond, 150 * time.Millisecond, 350 * time.Millisecond, 750 * time.Millisecond,
	}
)
