package neigh

import (
	"testing"
	"time"
)

// When a round is over, by what was asked and heard.
func TestRoundEnds(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	at := func(d time.Duration) time.Time { return start.Add(d) }
	nothing := func() error { return nil }
	open := func() *question { return &question{ask: nothing, round: 1} }
	heard := func() *question { return &question{ask: nothing, round: 1, heard: map[mac]time.Duration{{2}: 0}} }
	skipped := func() *question { return &question{ask: nothing, skip: "for a reason"} }
	self := schedule{sends: selfSends, window: selfWindow}
	neighbours := schedule{sends: neighbourSends, repeat: repeat, window: 500 * time.Millisecond, early: true}
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		schedule          schedule
		questions         []*question
		lastNew, lastSent time.Duration
		want              time.Duration
	}{
		"own, nothing heard":         {self, []*question{open()}, -time.Hour, 6 * ms, 11 * ms},
		"own, heard early":           {self, []*question{heard()}, 1 * ms, 6 * ms, 11 * ms},
		"own, heard late":            {self, []*question{heard()}, 10 * ms, 6 * ms, 10*ms + quiet},
		"own, asked late":            {self, []*question{open()}, -time.Hour, 20 * ms, 20*ms + answerTime},
		"own, not asked yet":         {self, []*question{{ask: nothing, due: at(30 * ms)}}, -time.Hour, 0, 30*ms + answerTime},
		"own, skipped":               {self, []*question{skipped()}, -time.Hour, -time.Hour, 11 * ms},
		"neighbours, one open":       {neighbours, []*question{heard(), open()}, 1 * ms, 0, 500 * ms},
		"neighbours, all heard":      {neighbours, []*question{heard(), heard()}, 1 * ms, 0, 1*ms + quiet},
		"neighbours, heard at last":  {neighbours, []*question{heard()}, 499 * ms, 350 * ms, 500 * ms},
		"neighbours, all is skipped": {neighbours, []*question{skipped()}, -time.Hour, -time.Hour, -time.Hour + quiet},
	} {
		s := &session{lastNew: at(c.lastNew), lastSent: at(c.lastSent)}
		if got := c.schedule.end(s, c.questions, start); !got.Equal(at(c.want)) {
			t.Errorf("%s: ends after %s, want %s", name, got.Sub(start), c.want)
		}
	}
}

func TestQuestionsAreRepeated(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	const ms = time.Millisecond
	c := schedule{sends: neighbourSends, repeat: repeat}
	for n, want := range []time.Duration{0, 50 * ms, 150 * ms, 350 * ms, 750 * ms, 1150 * ms, 1550 * ms} {
		if got := c.after(start, n).Sub(start); got != want {
			t.Errorf("question %d after %s, want %s", n, got, want)
		}
	}
	if got := (schedule{sends: selfSends}).after(start, len(selfSends)); !got.IsZero() {
		t.Errorf("phase 1 asks a fourth time: %s", got.Sub(start))
	}
}
