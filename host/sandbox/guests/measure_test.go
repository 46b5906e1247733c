package guests_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/host/sandbox/binary"
	"github.com/wasmill/wasmill/host/sandbox/guests"
)

var calibrate = flag.String("calibrate", "", "measure these modules too (files, separated by commas), and print the table of all")

// measure names one property of a module that a limit may bound; its value is the largest of a function where it speaks of a function.
type measure struct {
	name  string
	limit int // of package binary, 0 for none
}

const (
	mBytes = iota
	mFunctions
	mTypes
	mImports
	mExports
	mGlobals
	mTables
	mTable
	mElements
	mDataSegments
	mElemSegments
	mName
	mParams
	mResults
	mBody
	mInstructions
	mLocals
	mAllLocals
	mCalls
	mIndirect
	mNesting
	mBlocks
	mLoops
	mLoopLocals
	mBlocksLocals
	mShared
	mSpans
	mAllSpans
	mLoopShared
	mLoopUses
	mAllLoopUses
	mMerged
	mMergedShared
	mTargets
	mFuncTargets
	mAllTargets
	mCount
)

var measures = [mCount]measure{
	mBytes:        {"bytes", binary.MaxModule},
	mFunctions:    {"functions", binary.MaxFuncs},
	mTypes:        {"types", binary.MaxTypes},
	mImports:      {"imports", binary.MaxImports},
	mExports:      {"exports", binary.MaxExports},
	mGlobals:      {"globals", binary.MaxGlobals},
	mTables:       {"tables", binary.MaxTables},
	mTable:        {"elements of a table", binary.MaxTable},
	mElements:     {"elements in segments", binary.MaxElements},
	mDataSegments: {"data segments", binary.MaxSegments},
	mElemSegments: {"element segments", binary.MaxSegments},
	mName:         {"bytes of a name", binary.MaxName},
	mParams:       {"params", binary.MaxParams},
	mResults:      {"results", binary.MaxParams},
	mBody:         {"bytes of a body", binary.MaxBody},
	mInstructions: {"instructions", 0},
	mLocals:       {"locals with params", binary.MaxLocals},
	mAllLocals:    {"locals in the module", 0},
	mCalls:        {"calls in a function", 0},
	mIndirect:     {"indirect calls in a function", 0},
	mNesting:      {"nested blocks", binary.MaxNesting},
	mBlocks:       {"blocks", 0},
	mLoops:        {"nested loops", 0},
	mLoopLocals:   {"nested loops x locals", binary.MaxLoopLocals},
	mBlocksLocals: {"blocks x locals", 0},
	mShared:       {"shared locals", 0},
	mSpans:        {"spans of locals", 0},
	mAllSpans:     {"spans of locals in the module", 0},
	mLoopShared:   {"nested loops x their shared locals", 0},
	mLoopUses:     {"shared locals of loops, summed", 0},
	mAllLoopUses:  {"the same in the module", 0},
	mMerged:       {"values of locals that meet", binary.MaxMerged},
	mMergedShared: {"values of shared locals that meet", 0},
	mTargets:      {"labels of a br_table", binary.MaxTargets},
	mFuncTargets:  {"labels in a function", binary.MaxAllTargets},
	mAllTargets:   {"labels in the module", 0},
}

// figures are a module's measures.
type figures [mCount]int

func (f *figures) most(i, n int) { f[i] = max(f[i], n) }

// measured reads a module. The reader itself refuses what is over a limit, so what it takes is below all of them.
func measured(t testing.TB, name string, wasm []byte) figures {
	t.Helper()
	m, err := binary.Profile{Any: true}.Parse(wasm)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return figures{}
	}
	f := figures{
		mBytes: len(wasm), mFunctions: len(m.Funcs) + len(m.Imports), mTypes: len(m.Types), mImports: len(m.Imports), mExports: len(m.Exports),
		mGlobals: len(m.Globals), mTables: len(m.Tables), mDataSegments: len(m.Data), mElemSegments: len(m.Elements),
	}
	for _, t := range m.Tables {
		f.most(mTable, int(t.Min))
	}
	for _, e := range m.Elements {
		f[mElements] += max(len(e.Funcs), len(e.Exprs))
	}
	for _, e := range m.Exports {
		f.most(mName, len(e.Name))
	}
	for _, im := range m.Imports {
		f.most(mName, max(len(im.Name), len(im.Module)))
	}
	for _, t := range m.Types {
		f.most(mParams, len(t.Params))
		f.most(mResults, len(t.Results))
	}
	for i := range m.Bodies {
		f.body(&m.Bodies[i], len(m.Types[m.Funcs[i]].Params))
	}
	return f
}

func (f *figures) body(b *binary.Body, params int) {
	locals := params
	for _, l := range b.Locals {
		locals += int(l.Count)
	}
	var open []binary.Op
	blocks, loops, labels, calls, indirect := 0, 0, 0, 0, 0
	code := b.Read()
	for code.Next() {
		switch in := &code.In; in.Op {
		case binary.OpBlock, binary.OpLoop, binary.OpIf:
			open = append(open, in.Op)
			blocks++
			f.most(mNesting, len(open))
			if in.Op == binary.OpLoop {
				loops++
				f.most(mLoops, loops)
				f.most(mLoopLocals, loops*locals)
			}
		case binary.OpEnd:
			if n := len(open); n > 0 {
				if open[n-1] == binary.OpLoop {
					loops--
				}
				open = open[:n-1]
			}
		case binary.OpBrTable:
			f.most(mTargets, len(in.Targets))
			labels += len(in.Targets)
		case binary.OpCall:
			calls++
		case binary.OpCallIndirect:
			indirect++
		}
	}
	f.lives(b, locals)
	f.most(mBody, len(b.Code))
	f.most(mInstructions, b.Instructions)
	f.most(mLocals, locals)
	f[mAllLocals] += locals
	f.most(mCalls, calls)
	f.most(mIndirect, indirect)
	f.most(mBlocks, blocks)
	f.most(mBlocksLocals, blocks*locals)
	f.most(mFuncTargets, labels)
	f[mAllTargets] += labels
}

// lives measures how long locals live, in parts of the code between two branches or labels. A local that is used in one part
// only costs a compiler nothing, and unoptimised code has thousands of them. Others are shared; the span of one is the
// number of parts from its first to its last.
func (f *figures) lives(b *binary.Body, locals int) {
	first, last := make([]int, locals), make([]int, locals)
	part := 1
	type region struct {
		op   binary.Op
		from int
		join bool
	}
	uses, sets := []int{}, []bool{}
	var open []region
	depth := 0
	type nest struct {
		depth, from, to int
		join            bool
	}
	var nests []nest
	code := b.Read()
	for code.Next() {
		switch in := &code.In; in.Op {
		case binary.OpBlock, binary.OpLoop, binary.OpIf:
			part++
			if in.Op == binary.OpLoop {
				depth++
			}
			open = append(open, region{in.Op, len(uses), in.Op != binary.OpBlock})
		case binary.OpElse, binary.OpReturn, binary.OpUnreachable:
			part++
		case binary.OpBr, binary.OpBrIf, binary.OpBrTable:
			part++
			labels := in.Targets
			if in.Op != binary.OpBrTable {
				labels = []uint32{in.X}
			}
			for _, l := range labels {
				if int(l) < len(open) {
					open[len(open)-1-int(l)].join = true
				}
			}
		case binary.OpEnd:
			part++
			if n := len(open); n > 0 {
				o := open[n-1]
				if o.op == binary.OpLoop {
					nests = append(nests, nest{depth, o.from, len(uses), o.join})
					depth--
				} else if o.join {
					nests = append(nests, nest{0, o.from, len(uses), o.join})
				}
				open = open[:n-1]
			}
		case binary.OpLocalGet, binary.OpLocalSet, binary.OpLocalTee:
			if first[in.X] == 0 {
				first[in.X] = part
			}
			last[in.X] = part
			uses, sets = append(uses, int(in.X)), append(sets, in.Op != binary.OpLocalGet)
		}
	}
	shared, spans := 0, 0
	for i := range first {
		if first[i] != last[i] {
			shared++
			spans += last[i] - first[i]
		}
	}
	merged, mergedShared, loopUses := 0, 0, 0
	seen, seenSet := make([]int, locals), make([]int, locals)
	for i, n := range nests {
		inside, set, sharedSet := 0, 0, 0
		for at := n.from; at < n.to; at++ {
			l := uses[at]
			shared := first[l] != last[l]
			if shared && seen[l] <= i {
				inside++
				seen[l] = i + 1
			}
			if sets[at] {
				set++
				if shared && seenSet[l] <= i {
					sharedSet++
					seenSet[l] = i + 1
				}
			}
		}
		f.most(mLoopShared, n.depth*inside)
		if n.depth > 0 {
			loopUses += inside
		}
		merged += min(set, locals)
		mergedShared += sharedSet
	}
	f.most(mLoopUses, loopUses)
	f[mAllLoopUses] += loopUses
	f[mAllSpans] += spans
	f.most(mMerged, merged)
	f.most(mMergedShared, mergedShared)
	f.most(mShared, shared)
	f.most(mSpans, spans)
}

// corpus is every real module at hand: the guests, what the repository ships, and what the flag names.
func corpus(t *testing.T) (names []string, all map[string][]byte) {
	t.Helper()
	all = map[string][]byte{}
	add := func(name string, wasm []byte) {
		names = append(names, name)
		all[name] = wasm
	}
	for _, g := range guests.All() {
		if g.Built() || !testing.Short() {
			add(g.Name, module(t, g))
		}
	}
	files := []string{}
	for _, pattern := range []string{"transforms/*/*.wasm", "abi/sdk/*/*/*.wasm"} {
		found, err := filepath.Glob(filepath.Join("../../..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if *calibrate != "-" {
		files = append(files, strings.FieldsFunc(*calibrate, func(r rune) bool { return r == 44 })...)
	}
	for _, file := range files {
		wasm, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		add(strings.TrimSuffix(filepath.Base(file), ".wasm"), wasm)
	}
	return names, all
}

// TestCalibration shows how far real modules stay below each limit of the reader: at least by a factor of four, but for the
// size, and for data segments, of which Go's linker makes 100,000 and never more. With the flag -calibrate it prints all
// figures.
func TestCalibration(t *testing.T) {
	names, all := corpus(t)
	var largest figures
	rows := map[string]figures{}
	for _, name := range names {
		f := measured(t, name, all[name])
		rows[name] = f
		for i, n := range f {
			largest.most(i, n)
		}
	}
	for i, m := range measures {
		if m.limit > 0 && largest[i]*4 > m.limit && i != mBytes && i != mDataSegments {
			t.Errorf("%s: a real module has %d, the limit is %d", m.name, largest[i], m.limit)
		}
	}
	if *calibrate != "" {
		fmt.Print(table(names, rows, largest))
	}
}

// table is the figures as Markdown, one line a measure, with the three largest modules.
func table(names []string, rows map[string]figures, largest figures) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d modules.\n\n| measure | limit | largest | the three largest |\n|---|---|---|---|\n", len(names))
	for i, m := range measures {
		sorted := slices.Clone(names)
		slices.SortStableFunc(sorted, func(a, b string) int { return rows[b][i] - rows[a][i] })
		var top []string
		for _, name := range sorted[:3] {
			top = append(top, fmt.Sprintf("%s %d", name, rows[name][i]))
		}
		limit := "none"
		if m.limit > 0 {
			limit = fmt.Sprint(m.limit)
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %s |\n", m.name, limit, largest[i], strings.Join(top, ", "))
	}
	return b.String()
}
