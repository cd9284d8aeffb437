package sqlite

// What the black-box tests cannot reach.
var (
	Pack   = pack
	Unpack = unpack
	Words  = words
)
