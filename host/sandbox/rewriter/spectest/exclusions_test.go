package spectest

// exclusion is a list of lines of a script where we give another answer than the suite asks for, and why we may.
type exclusion struct {
	script string
	lines  []int
	reason string
}

var exclusions = []exclusion{
	{"elem", []int{281, 298, 315, 332}, importedTable},
	{"linking", []int{244, 267}, importedTable},
}

// importedTable is why some modules are instantiated that should trap. What lies outside a table of the module itself is
// refused by the decoder.
const importedTable = "an active element segment lies outside an imported table: only instantiation can tell, where the " +
	"engine leaves the segment out; no module that is run here can import a table"
