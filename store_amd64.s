//go:build !purego && !ringcache_heap && !race && !asan && !msan

#include "textflag.h"

// func storeRelease(p *uint64, v uint64)
TEXT ·storeRelease(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ v+8(FP), CX
	MOVQ CX, (AX)
	RET

// func addOwned(p *atomic.Uint64, delta uint64)
TEXT ·addOwned(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ delta+8(FP), CX
	ADDQ CX, (AX)
	RET
