package rawdict

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestBuild_TakesThePartOfEachThatFits(t *testing.T) {
	all := func(c byte, n int) []byte { return bytes.Repeat([]byte{c}, n) }
	assert.Equal(t, append(all(1, 10), all(2, 20)...), Build([][]byte{all(1, 10), all(2, 20)}))
	dict := Build([][]byte{all(1, Most), all(2, Most/2), {}, all(3, Most/2)})
	assert.Len(t, dict, Most)
	assert.Equal(t, all(1, Most/2), dict[:Most/2])
	assert.Equal(t, all(2, Most/4), dict[Most/2:Most*3/4])
	assert.Equal(t, all(3, Most/4), dict[Most*3/4:])
	assert.Nil(t, Build(nil))
	assert.Nil(t, Build([][]byte{all(1, Least-1)}))
	assert.NotNil(t, Build([][]byte{all(1, Least)}))
}
