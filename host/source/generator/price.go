package generator

// Prices are spread evenly over six powers of ten: 10^(6u) for an even u in [0,1), in cents 100 to 100,000,000. They are
// made of whole numbers alone, since math.Exp and math.Pow differ in their last bits from one architecture to the next.
//
// The table holds 100 * 10^(6 i / 1024) for i = 0..1024, in units of 2^-34 cent: the first is 100, each further one is the
// one before times 10^(6/1024), rounded down. Between two of them a price lies on the straight line, which is off by at most
// 23 millionths.
const (
	priceSteps = 1024
	priceUnit  = 34
	// priceRatio is 10^(6/1024) in units of 2^-62, rounded down.
	priceRatio = 0x40de8bca5c9bf945
)

var prices = priceTable()

func priceTable() *[priceSteps + 1]uint64 {
	var t [priceSteps + 1]uint64
	t[0] = 100 << priceUnit
	for i := range priceSteps {
		t[i+1] = times(t[i], priceRatio)
	}
	return &t
}

// price throws for a price in cents: 10 bits choose the step, 22 bits the place within it.
func (d *dice) price() int64 {
	x := d.throw()
	i, part := x>>54, x>>32&(1<<22-1)
	exact := prices[i] + (prices[i+1]-prices[i])>>22*part
	return int64((exact + 1<<(priceUnit-1)) >> priceUnit)
}
