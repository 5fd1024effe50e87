//go:build !purego && !ringcache_heap && !race && !asan && !msan

#include "textflag.h"

// func prefetch(p unsafe.Pointer)
TEXT ·prefetch(SB), NOSPLIT, $0-8
	MOVD p+0(FP), R0
	PRFM (R0), PLDL1KEEP
	RET

// func prefetchLines(p unsafe.Pointer, n int)
TEXT ·prefetchLines(SB), NOSPLIT, $0-16
	MOVD p+0(FP), R0
	MOVD n+8(FP), R1

line:
	PRFM (R0), PLDL1KEEP
	ADD  $64, R0
	SUBS $1, R1
	BNE  line
	RET

// func prefetchWrite(p unsafe.Pointer, n int)
TEXT ·prefetchWrite(SB), NOSPLIT, $0-16
	MOVD p+0(FP), R0
	MOVD n+8(FP), R1

line:
	PRFM (R0), PSTL1KEEP
	ADD  $64, R0
	SUBS $1, R1
	BNE  line
	RET
