package demo

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/wasmill/wasmill/host/fault"
)

const (
	// frame is between two looks at everything, logEvery between two lines without a terminal.
	frame    = 100 * time.Millisecond
	logEvery = time.Second
	// patience is how long nothing may move before the demo gives up.
	patience = time.Minute
	// killGap is the least time between two kills without a key.
	killGap = 300 * time.Millisecond
	// grace is how long engines have to end when the demo is stopped.
	grace = 2 * time.Second
	// quiet is when it is worth saying that nothing moves.
	quiet = 3 * time.Second
)

// worker is one engine: a job and the process that runs it now.
type worker struct {
	job, input, output, path string
	proc                     *process
	// asked to end, then draining, then finished.
	asked, draining, finished bool
	killing                   bool      // the process was sent kill -9
	killedAt                  time.Time // until the first batch after it
	at                        map[int32]int64
	batches                   int64
	last                      time.Duration
	kills                     int
}

// show is a running demo. All of it belongs to the goroutine of run.
type show struct {
	cfg      Config
	env      Env
	dir      string
	broker   *broker
	onlooker *onlooker
	screen   screen
	workers  []*worker
	notices  chan notice
	quit     chan struct{}
	schedule *schedule
	meter    *meter
	began    time.Time
	moved    time.Time // when something last got on
	killed   time.Time // when the last kill was
	drawn    time.Time
	kills    int
	first    []time.Duration
	note     string
	phase    string
	wanted   bool // the end, by a key
	ending   bool // no more orders
}

func newShow(c Config, e Env, dir string, b *broker) (*show, error) {
	o, err := newOnlooker(b.addresses())
	if err != nil {
		return nil, err
	}
	now := e.Now()
	s := &show{
		cfg: c, env: e, dir: dir, broker: b, onlooker: o, notices: make(chan notice, 64), quit: make(chan struct{}),
		schedule: newSchedule(c.Kills, c.Seed), meter: &meter{}, began: now, moved: now, phase: "running",
		workers: []*worker{
			{job: jobOrders, output: topicOrders, path: "generator -> topic"},
			{job: jobConvert, input: topicOrders, output: topicConverted, path: "topic -> wasm -> topic"},
			{job: jobLake, input: topicConverted, path: "topic -> Parquet"},
		},
	}
	s.screen = log{e.Log}
	if e.Out != nil {
		if s.screen, err = openTerminal(e.In, e.Out, style{e.Colour, e.Unicode}); err != nil {
			o.close()
			return nil, err
		}
	}
	return s, nil
}

// run runs the jobs until everything is processed.
func (s *show) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go s.onlooker.run(ctx)
	s.draw(true)
	for i := range s.workers {
		if err := s.start(i); err != nil {
			return err
		}
	}
	tick := time.NewTicker(frame)
	defer tick.Stop()
	keys := s.screen.keys()
	for !s.workers[len(s.workers)-1].finished {
		var err error
		select {
		case <-ctx.Done():
			return stopped()
		case n := <-s.notices:
			err = s.take(n)
		case k, ok := <-keys:
			if !ok {
				keys = nil
			}
			err = s.key(k)
		case <-tick.C:
			err = s.tick()
		}
		if err != nil {
			return err
		}
	}
	s.draw(true)
	return nil
}

// start runs a job in a new process.
func (s *show) start(i int) error {
	w := s.workers[i]
	w.killing = false
	w.draining = w.draining || w.asked
	tell := func(b *batchLine, e *ending) {
		select {
		case s.notices <- notice{job: i, batch: b, ended: e, at: s.env.Now()}:
		case <-s.quit:
		}
	}
	proc, err := startProcess(s.env.Program, s.dir, jobFile(w.job, w.draining), s.environ(), tell)
	if err != nil {
		return fault.New(CodeEngine, "engine "+w.job, fmt.Errorf("start %s: %w", s.env.Program.Path, err), "start wasmill by its full path")
	}
	w.proc = proc
	return nil
}

// environ is the engines' environment: whatever cluster the user's own names, theirs is the broker of the demo.
func (s *show) environ() []string {
	return append(slices.Clone(s.env.Environ), "KAFKA_BROKERS="+s.broker.addresses()[0])
}

// take acts on what a process did.
func (s *show) take(n notice) error {
	w := s.workers[n.job]
	if n.batch != nil {
		s.moved = n.at
		w.batches, w.last = n.batch.Batch+1, time.Duration(n.batch.Wasmill.Micros["total"])*time.Microsecond
		for p, at := range n.batch.position(w.input) {
			if w.at == nil {
				w.at = map[int32]int64{}
			}
			w.at[p] = max(w.at[p], at)
		}
		if !w.killedAt.IsZero() && !w.killing {
			s.first = append(s.first, n.at.Sub(w.killedAt))
			s.note = fmt.Sprintf("first output of %s after kill -9: %s s", w.job, seconds(n.at.Sub(w.killedAt)))
			w.killedAt = time.Time{}
		}
		return nil
	}
	switch e := n.ended; {
	case e.killed && w.killing:
		w.kills++
		return s.start(n.job)
	case e.ok && w.draining:
		w.finished, w.killedAt, s.moved = true, time.Time{}, n.at
		s.finish(n.job + 1)
		return nil
	case w.asked && !w.draining && (e.ok || e.early):
		return s.start(n.job)
	}
	return fault.New(CodeEngine, "engine "+w.job, fmt.Errorf("ended unasked: %s\n%s", n.ended.text, w.proc.log.last(8)),
		"what it said is in "+w.proc.log.name+", and the job in "+jobFile(w.job, w.draining)+" beside it")
}

// finish lets a job process what there is and end: first it is asked to end after its batch, then its draining twin runs.
func (s *show) finish(i int) {
	if i >= len(s.workers) {
		return
	}
	w := s.workers[i]
	w.asked = true
	s.phase = "finishing " + w.job
	w.proc.finish()
}

// kill sends kill -9 to the engines that run.
func (s *show) kill(victims []int) {
	var names string
	now := s.env.Now()
	for _, i := range victims {
		w := s.workers[i]
		if w.finished || w.killing {
			continue
		}
		w.killing = true
		if w.killedAt.IsZero() {
			w.killedAt = now
		}
		w.proc.kill()
		names += " " + w.job
	}
	if names == "" {
		return
	}
	s.kills++
	s.killed = now
	s.note = "kill -9" + names
}

// Keys.
const (
	keyInterrupt = 3 // ctrl-C, which a raw terminal does not make a signal of
	keyQuit      = 'q'
	keyKill      = 'k'
)

func (s *show) key(k byte) error {
	switch {
	case k == keyInterrupt:
		return stopped()
	case k == keyKill:
		s.kill(everyJob())
	case k >= '1' && int(k-'1') < len(s.workers):
		s.kill([]int{int(k - '1')})
	case k == keyQuit && !s.ending:
		s.wanted, s.phase = true, "finishing"
	}
	return nil
}

// end makes no more orders, and no more kills by themselves.
func (s *show) end() {
	s.ending, s.schedule.at = true, nil
	s.finish(0)
}

// tick looks at the time and the counts.
func (s *show) tick() error {
	now := s.env.Now()
	orders := s.onlooker.records(topicOrders)
	if s.meter.sample(now, orders, s.onlooker.records(topicConverted), s.inTable()) {
		s.moved = now
	}
	share := done(orders, s.cfg.Records, now.Sub(s.began), s.cfg.Limit)
	if !s.ending && now.Sub(s.killed) >= killGap && s.schedule.due(share) {
		s.kill(s.schedule.victims())
	}
	used := share >= 1 && len(s.schedule.at) == 0
	if !s.ending && (used || s.wanted) && orders > 0 { // without one there is nothing to prove
		s.end()
	}
	s.draw(false)
	if now.Sub(s.moved) >= patience {
		return s.stalled(now)
	}
	return nil
}

// still says for how long nothing has moved.
func (s *show) still(now time.Time) string {
	return fmt.Sprintf("nothing has moved for %s", now.Sub(s.moved).Round(time.Second))
}

func (s *show) stalled(now time.Time) error {
	text := s.still(now) + ", " + s.phase
	for _, w := range s.workers {
		if said := w.proc.log.last(2); said != "" && !w.finished {
			text += "\n" + w.job + ": " + said
		}
	}
	return fault.New(CodeStalled, "the demo", fmt.Errorf("%s", text), "is the disk full? what the engines said is in "+s.dir)
}

// inTable is how many records the last job has written.
func (s *show) inTable() int64 {
	w := s.workers[len(s.workers)-1]
	return s.onlooker.records(w.input) - s.lag(w)
}

func (s *show) lag(w *worker) int64 {
	if w.finished {
		return 0
	}
	return s.onlooker.lag(w.input, w.at)
}

// draw shows what there is to see.
func (s *show) draw(always bool) {
	now := s.env.Now()
	if s.env.Out == nil && !always && now.Sub(s.drawn) < logEvery {
		return
	}
	s.drawn = now
	p := &picture{
		elapsed: now.Sub(s.began), total: s.cfg.Records, rate: s.cfg.Rate, broker: s.broker.addresses()[0], dir: s.dir,
		history: s.meter.history, kills: s.kills, first: s.first, phase: s.phase, note: s.note,
	}
	if now.Sub(s.moved) >= quiet {
		p.note = s.still(now)
	}
	counts := []int64{s.onlooker.records(topicOrders), s.onlooker.records(topicConverted), s.inTable()}
	for i, w := range s.workers {
		r := row{job: w.job, path: w.path, records: counts[i], perSecond: s.meter.rate(i), lag: -1, batches: w.batches, last: w.last, kills: w.kills, state: w.state()}
		if w.input != "" {
			r.lag = s.lag(w)
		}
		r.down = !w.killedAt.IsZero()
		p.rows = append(p.rows, r)
	}
	s.screen.show(p)
}

func (w *worker) state() string {
	switch {
	case w.finished:
		return "done"
	case w.killing:
		return "killed"
	case !w.killedAt.IsZero():
		return "starting again"
	case w.draining:
		return "finishing"
	case w.proc == nil:
		return "starting"
	}
	return fmt.Sprintf("pid %d", w.proc.pid())
}

// proving says that the count has begun.
func (s *show) proving() {
	s.phase, s.note = "counting what there is", ""
	s.draw(true)
	s.screen.close()
}

func (s *show) result(p *Proof) *Result {
	r := &Result{Proof: p, Kills: s.kills, first: s.first, First: []float64{}}
	for _, w := range s.workers {
		r.Processes += w.kills
	}
	for _, d := range s.first {
		r.First = append(r.First, float64(d.Milliseconds())/1000)
	}
	return r
}

// close ends every engine and gives the terminal back. When it returns no process is left.
func (s *show) close() {
	defer s.screen.close()
	close(s.quit)
	for _, w := range s.workers {
		if w.proc != nil {
			w.proc.finish()
		}
	}
	deadline := time.NewTimer(grace)
	defer deadline.Stop()
	late := false
	for _, w := range s.workers {
		if w.proc == nil {
			continue
		}
		if !late {
			select {
			case <-w.proc.done:
				continue
			case <-deadline.C:
				late = true
			}
		}
		w.proc.kill()
		<-w.proc.done
	}
	s.onlooker.close()
}
