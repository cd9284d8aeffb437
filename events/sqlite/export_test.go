package sqlite

// What the black-box tests cannot reach.
var (
	Pack  = pack
	Words = words
)

// Unpack is unpack without a buffer.
func Unpack(packed []byte) ([]byte, error) { return unpack(packed, nil) }
