package generator

import (
	"math/bits"
	"strconv"
)

// writer writes the values of Nexmark's events, one after the other into the same bytes.
type writer struct {
	*nexmark
	dice
	at int64 // dateTime
	b  []byte
}

// event writes event n, whose id is id.
func (w *writer) event(n, id int64) {
	switch typeOf(id) {
	case typePerson:
		w.open(`{"event_type":0,`, `{"event_type":0,"person":{`)
		w.person(id)
		w.shut(`}`, `},"auction":null,"bid":null}`)
	case typeAuction:
		w.open(`{"event_type":1,`, `{"event_type":1,"person":null,"auction":{`)
		w.auction(n, id)
		w.shut(`}`, `},"bid":null}`)
	default:
		w.open(`{"event_type":2,`, `{"event_type":2,"person":null,"auction":null,"bid":{`)
		w.bid(id)
		w.shut(`}`, `}}`)
	}
}

func (w *writer) open(flat, nested string) {
	if w.flat {
		nested = flat
	}
	w.b = append(w.b[:0], nested...)
}

func (w *writer) shut(flat, nested string) {
	if w.flat {
		nested = flat
	}
	w.b = append(w.b, nested...)
}

func (w *writer) text(s string) { w.b = append(w.b, s...) }

// number writes a name, with its quotes and colon, and a number.
func (w *writer) number(name string, v int64) {
	w.text(name)
	w.b = strconv.AppendInt(w.b, v, 10)
}

// words appends 3 to m letters and blanks, one of 13 a blank, without those at either end; it returns how many.
func (w *writer) words(m int64) int {
	start := len(w.b)
	for range 3 + w.upTo(m-3) {
		c := byte(' ')
		if v := w.upTo(13 * 26); v >= 26 {
			c = 'a' + byte(v%26)
		}
		if c != ' ' || len(w.b) > start {
			w.b = append(w.b, c)
		}
	}
	for len(w.b) > start && w.b[len(w.b)-1] == ' ' {
		w.b = w.b[:len(w.b)-1]
	}
	return len(w.b) - start
}

// extra writes what brings a row of cur bytes to want on average, a fifth more or less.
func (w *writer) extra(cur, want int) {
	w.text(`,"extra":"`)
	if missing := want - cur; missing >= 0 {
		spread := (2*missing + 5) / 10
		w.b = w.appendLetters(w.b, int64(missing-spread)+w.upTo(int64(2*spread)))
	}
	w.text(`"`)
}

var (
	firstNames = [...]string{"Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter"}
	lastNames  = [...]string{"Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris"}
	cities     = [...]string{"Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne"}
	states     = [...]string{"AZ", "CA", "ID", "OR", "WA", "WY"}
)

func (w *writer) person(id int64) {
	w.number(`"id":`, lastPerson(id)+firstPerson)
	w.text(`,"name":"`)
	start := len(w.b)
	w.text(firstNames[w.upTo(int64(len(firstNames)))])
	w.text(" ")
	w.text(lastNames[w.upTo(int64(len(lastNames)))])
	texts := len(w.b) - start
	w.text(`","emailAddress":"`)
	start = len(w.b)
	w.words(7)
	w.text("@")
	w.words(5)
	w.text(".com")
	texts += len(w.b) - start
	w.text(`","creditCard":"`)
	start = len(w.b)
	for i := range 4 {
		if i > 0 {
			w.text(" ")
		}
		v := w.upTo(10_000)
		w.b = append(w.b, '0'+byte(v/1000), '0'+byte(v/100%10), '0'+byte(v/10%10), '0'+byte(v%10))
	}
	texts += len(w.b) - start
	city, state := cities[w.upTo(int64(len(cities)))], states[w.upTo(int64(len(states)))]
	w.text(`","city":"`)
	w.text(city)
	w.text(`","state":"`)
	w.text(state)
	w.number(`","dateTime":`, w.at)
	w.extra(8+texts+len(city)+len(state), 200)
}

func (w *writer) auction(n, id int64) {
	w.number(`"id":`, lastAuction(id)+firstAuction)
	seller := w.hotPerson(id, 0)
	category := firstCategory + w.upTo(5)
	bid := w.price()
	expires := w.at + 1 + w.upTo(max(2*(w.timeMS(n+outlook)-w.at), 1))
	w.text(`,"itemName":"`)
	texts := w.words(20)
	w.text(`","description":"`)
	texts += w.words(100)
	w.number(`","initialBid":`, bid)
	w.number(`,"reserve":`, bid+w.price())
	w.number(`,"dateTime":`, w.at)
	w.number(`,"expires":`, expires)
	w.number(`,"seller":`, seller)
	w.number(`,"category":`, category)
	w.extra(48+texts, 500)
}

func (w *writer) bid(id int64) {
	var auction int64
	if w.upTo(2) > 0 {
		auction = lastAuction(id) / hotEvery * hotEvery
	} else {
		auction = w.nextAuction(id)
	}
	bidder := w.hotPerson(id, 1)
	price := w.price()
	channel := channels + w.upTo(hotChannels)
	if w.upTo(2) == 0 {
		channel = w.upTo(channels)
	}
	w.number(`"auction":`, auction+firstAuction)
	w.number(`,"bidder":`, bidder)
	w.number(`,"price":`, price)
	w.text(`,"channel":"`)
	w.b = append(w.b, w.urls.of(channel)...)
	w.number(`","dateTime":`, w.at)
	w.extra(32, 100)
}

// urls holds what each channel adds to a bid: its name and its address, which are always the same.
type urls struct {
	text []byte
	ends [channels + hotChannels]uint32
}

// makeURLs makes the channels' addresses by dice of their own. Nine of ten of those with a number carry an id, their number
// with its bits turned around; the hot ones, which have names, carry none.
func makeURLs(seed uint64) *urls {
	var u urls
	hot := [hotChannels]string{"Google", "Facebook", "Baidu", "Apple"}
	for k := range int64(channels + hotChannels) {
		d := dice(mix(seed) ^ mix(uint64(k)))
		if k < channels {
			u.text = strconv.AppendInt(append(u.text, "channel-"...), k, 10)
		} else {
			u.text = append(u.text, hot[k-channels]...)
		}
		u.text = append(u.text, `","url":"https://www.nexmark.com/`...)
		for range 3 {
			u.text = append(d.appendLetters(u.text, 3+d.upTo(3)), '/')
		}
		u.text = append(u.text, "item.htm?query=1"...)
		if k < channels && d.upTo(10) > 0 {
			turned := int64(int32(bits.Reverse32(uint32(k))))
			u.text = strconv.AppendInt(append(u.text, "&channel_id="...), max(turned, -turned), 10)
		}
		u.ends[k] = uint32(len(u.text))
	}
	return &u
}

// of returns the text of a channel from its name up to the end of its address.
func (u *urls) of(channel int64) []byte {
	var start uint32
	if channel > 0 {
		start = u.ends[channel-1]
	}
	return u.text[start:u.ends[channel]]
}
