package generator

import (
	"fmt"

	"github.com/wasmill/wasmill/abi"
)

// The events of the Nexmark benchmark: of 50 events in a row the first is a person, the next three are auctions and the rest
// bids. Numbers, shares and shapes are those of its generator (github.com/nexmark/nexmark); as in Apache Beam's each event
// has dice of its own, seeded by its id. Throws come in the order in which they are written below, which is therefore part
// of the format: testdata/nexmark.golden holds it.
//
//	id(n)         = (n/g)*g + (n*953)%g, for groups of g events that come out of order
//	time(n)       = base + n*1,000,000/rate/1000 milliseconds; an event's dateTime is time(id)
//	lastPerson    = id/50, lastAuction = the auction of the highest number up to id
//	next person   = one of the last 1000 or the 10 to come; next auction = one of the last 100 or the 10 to come
const (
	cycle         = 50
	cycleAuctions = 3
	cycleBids     = cycle - 1 - cycleAuctions

	firstPerson   = 1000 // the id of person 0
	firstAuction  = 1000
	firstCategory = 10

	activePersons = 1000
	inFlight      = 100 // auctions
	lead          = 10  // how many persons and auctions ahead are spoken of already
	hotEvery      = 100 // one of so many persons and auctions is hot
	// outlook is after how many events a new auction is over on average: those in which a hundred auctions begin.
	outlook = inFlight * cycle / cycleAuctions

	channels    = 10_000
	hotChannels = 4
)

// Event types, as they stand in a value's event_type.
const (
	typePerson = iota
	typeAuction
	typeBid
)

var eventTypes = map[string]int{"person": typePerson, "auction": typeAuction, "bid": typeBid}

// Nexmark says how the events of KindNexmark are.
type Nexmark struct {
	// EventRate is how many events lie in a second of event time; 0 means 10,000.
	EventRate int64
	// BaseMS is the time of event 0 in milliseconds since 1970; 0 means 1,700,000,000,000.
	BaseMS int64
	// OutOfOrder is in groups of how many the events are shuffled; 0 and 1 mean none.
	OutOfOrder int64
	// Only makes one kind of events alone records: person, auction or bid. Their numbers are those they have among all.
	Only string
	// Flat makes an event's fields those of the value itself: {"event_type":2,"auction":...}. Otherwise they stand in a member
	// that is called after the kind, as Nexmark sends them: {"event_type":2,"person":null,"auction":null,"bid":{...}}.
	Flat bool
}

func (c *Nexmark) check() error {
	const lastBase = 200_000_000_000_000 // the year 8307
	switch {
	case c.EventRate < 0 || c.BaseMS < 0 || c.BaseMS > lastBase:
		return fmt.Errorf("the event rate must not be negative, and the base time lie between 0 and %d", int64(lastBase))
	case c.OutOfOrder < 0 || c.OutOfOrder >= shuffle:
		return fmt.Errorf("groups out of order have 1 to %d events", shuffle-1)
	case c.Only != "" && c.Only != "person" && c.Only != "auction" && c.Only != "bid":
		return fmt.Errorf("%q is none of person, auction and bid", c.Only)
	}
	return nil
}

// shuffle spreads the events of a group. It is a prime, so that any smaller group is spread over itself.
const shuffle = 953

// nexmark is the stream of Nexmark's events.
type nexmark struct {
	seed              uint64
	rate, base, group int64
	only              int // an event type, -1 for all
	flat              bool
	urls              *urls
}

func newNexmark(seed uint64, c Nexmark) *nexmark {
	s := &nexmark{seed: mix(seed + 0x4e65786d61726b), rate: c.EventRate, base: c.BaseMS, group: max(c.OutOfOrder, 1), only: -1, flat: c.Flat}
	if s.rate == 0 {
		s.rate = 10_000
	}
	if s.base == 0 {
		s.base = 1_700_000_000_000
	}
	if t, ok := eventTypes[c.Only]; ok {
		s.only = t
	}
	s.urls = makeURLs(s.seed)
	return s
}

func (*nexmark) name() string { return "nexmark" }

func (s *nexmark) size() int64 {
	switch s.only {
	case typePerson:
		return 400
	case typeAuction:
		return 768
	}
	return 384
}

// id is the id of event n.
func (s *nexmark) id(n int64) int64 {
	if s.group == 1 {
		return n
	}
	return n - n%s.group + n%s.group*shuffle%s.group
}

func (s *nexmark) timeMS(n int64) int64 {
	return s.base + n/s.rate*1000 + n%s.rate*1_000_000/s.rate/1000
}

func typeOf(id int64) int {
	switch o := id % cycle; {
	case o < 1:
		return typePerson
	case o <= cycleAuctions:
		return typeAuction
	}
	return typeBid
}

func (s *nexmark) has(n int64) bool { return s.only < 0 || typeOf(s.id(n)) == s.only }

func (s *nexmark) count(from, to int64) int64 {
	if s.only < 0 {
		return to - from
	}
	return s.countTo(to) - s.countTo(from)
}

// countTo counts the records among the events below n: whole groups have the events that they would have in order.
func (s *nexmark) countTo(n int64) int64 {
	whole := n - n%s.group
	cycles, o := whole/cycle, whole%cycle
	var count int64
	switch s.only {
	case typePerson:
		count = cycles + min(o, 1)
	case typeAuction:
		count = cycles*cycleAuctions + min(max(o-1, 0), cycleAuctions)
	case typeBid:
		count = cycles*cycleBids + max(o-1-cycleAuctions, 0)
	}
	for n := range n - whole {
		if s.has(whole + n) {
			count++
		}
	}
	return count
}

func lastPerson(id int64) int64 { return id / cycle }

func lastAuction(id int64) int64 {
	e, o := id/cycle, id%cycle
	switch {
	case o < 1:
		e, o = e-1, cycleAuctions-1
	case o > cycleAuctions:
		o = cycleAuctions - 1
	default:
		o--
	}
	return e*cycleAuctions + o
}

func (d *dice) nextPerson(id int64) int64 {
	persons := lastPerson(id) + 1
	active := min(persons, activePersons)
	return persons - active + d.upTo(active+lead)
}

func (d *dice) nextAuction(id int64) int64 {
	high := lastAuction(id)
	low := max(high-inFlight, 0)
	return low + d.upTo(high-low+1+lead)
}

// hotPerson is the hot person, or one of the others in a quarter of all cases.
func (d *dice) hotPerson(id, which int64) int64 {
	if d.upTo(4) > 0 {
		return lastPerson(id)/hotEvery*hotEvery + which + firstPerson
	}
	return d.nextPerson(id) + firstPerson
}

func (s *nexmark) events() maker {
	w := writer{nexmark: s}
	return func(n int64, r *abi.Record) {
		id := s.id(n)
		w.at = s.timeMS(id)
		w.dice = dice(s.seed ^ mix(uint64(id)))
		w.event(n, id)
		*r = abi.Record{Value: w.b, EventTime: w.at * 1000, Flags: abi.FlagEventTime}
	}
}
