// Package transforms holds the transforms that Wasmill ships: for each a folder with its manifest, its source in one or
// more languages, the built module and a word on what it does. This package itself holds the modules that are part of the
// program; its tests prove that the sources build to the committed modules and that the modules do what is written of them.
//
// Nothing here may depend on the host's packages, and the host never depends on anything here.
package transforms
