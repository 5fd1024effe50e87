//go:build !purego && !ringcache_heap && !race && !asan && !msan

#include "go_asm.h"
#include "textflag.h"
#include "prefetch_amd64.h"

// func prefetch(p unsafe.Pointer)
TEXT ·prefetch(SB), NOSPLIT, $0-8
	MOVQ p+0(FP), AX
	PREFETCHT0 (AX)
	RET

// func prefetchLines(p unsafe.Pointer, n int)
TEXT ·prefetchLines(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ n+8(FP), CX

line:
	PREFETCHT0 (AX)
	ADDQ $64, AX
	DECQ CX
	JNZ  line
	RET

// func prefetchWrite(p unsafe.Pointer, n int)
TEXT ·prefetchWrite(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ n+8(FP), CX

line:
	PREFETCHW
	ADDQ $64, AX
	DECQ CX
	JNZ  line
	RET

// func prefetchSoon(p unsafe.Pointer, n int, lane uint)
TEXT ·prefetchSoon(SB), NOSPLIT, $0-24
	MOVQ p+0(FP), AX
	MOVQ n+8(FP), CX
	MOVQ lane+16(FP), BX
	SHLQ $const_soonShift, BX
	LEAQ ·soon(SB), DX
	ADDQ DX, BX
	MOVQ soonLines_waiting(BX), DI
	CMPQ DI, $const_soonMost
	JGE  all
	MOVQ DI, SI
	SHLQ $4, SI
	MOVQ AX, soonLines_at(BX)(SI*1)
	MOVQ CX, (soonLines_at+8)(BX)(SI*1)
	INCQ DI
	MOVQ DI, soonLines_waiting(BX)
	RET

all:
	// The first line of each before the others: these are in pages of their own.
	MOVQ $0, soonLines_waiting(BX)
	PREFETCHW
	MOVQ AX, SI
	LEAQ soonLines_at(BX), R8

first:
	MOVQ (R8), AX
	PREFETCHW
	ADDQ $16, R8
	DECQ DI
	JNZ  first

	MOVQ SI, AX
	LEAQ soonLines_at(BX), R8
	MOVQ $const_soonMost, DI
	JMP  rest

line:
	ADDQ $64, AX
	PREFETCHW

rest:
	DECQ CX
	JG   line
	DECQ DI
	JL   done
	MOVQ (R8), AX
	MOVQ 8(R8), CX
	ADDQ $16, R8
	JMP  rest

done:
	RET
