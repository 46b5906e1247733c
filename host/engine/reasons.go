package engine

import "fmt"

// maxReasons bounds the reasons that a list of letters tells apart; codes and columns are few, but a guest makes up its own.
const maxReasons = 64

// reason is what records that are set aside have in common, how many they are, and one of them, without its record: the first
// of which it is known where it was read.
type reason struct {
	first letter
	n     int
}

// of tells whether a letter gives this reason. Its text may quote the record, and is no part of it.
func (r *reason) of(lt *letter) bool {
	f := &r.first
	return f.code == lt.code && f.word == lt.word && f.stage == lt.stage && f.misfits == lt.misfits
}

// reasons are told apart in the order of their first letters.
type reasons []reason

// add counts a letter; n of them, where it is the first of those that another list has counted.
func (rs *reasons) add(lt letter, n int) {
	for i := range *rs {
		if r := &(*rs)[i]; r.of(&lt) {
			r.n += n
			if r.first.origin.split == "" && lt.origin.split != "" {
				lt.rec, r.first = nil, lt
			}
			return
		}
	}
	if len(*rs) < maxReasons {
		lt.rec = nil
		*rs = append(*rs, reason{lt, n})
	}
}

// most is the most frequent reason, the earliest of several; nil for none.
func (rs reasons) most() *reason {
	var most *reason
	for i := range rs {
		if most == nil || rs[i].n > most.n {
			most = &rs[i]
		}
	}
	return most
}

// reasons are those of all lanes, in order.
func (r *runner) reasons() reasons {
	var out reasons
	for _, l := range r.lanes {
		for _, ls := range l.allLetters() {
			for i := range ls.why {
				out.add(ls.why[i].first, ls.why[i].n)
			}
		}
	}
	return out
}

// named is the word of a letter's reason, and the guest's own code where it gave one.
func (lt *letter) named() string {
	if lt.code < 0 {
		return lt.word
	}
	return fmt.Sprintf("%s %d", lt.word, lt.code)
}

// place says where a letter's record was read, as far as that is known, and which transform set it aside.
func (g *Graph) place(lt *letter) string {
	place := g.sourceName(lt.origin.edge)
	if lt.origin.split != "" {
		place += " " + lt.origin.split
	}
	if lt.origin.offset >= 0 && lt.origin.edge.Source >= 0 {
		place += fmt.Sprintf(" record %d", lt.origin.offset)
	}
	if lt.stage != "" {
		place += ", transform " + lt.stage
	}
	return place
}
