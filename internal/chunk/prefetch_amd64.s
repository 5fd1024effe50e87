//go:build !purego

#include "textflag.h"

// PREFETCHW (AX): the assembler has no name for it.
#define PREFETCHW BYTE $0x0F; BYTE $0x0D; BYTE $0x08

// func Prefetch(p unsafe.Pointer, n int)
TEXT ·Prefetch(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ n+8(FP), CX

line:
	PREFETCHT0 (AX)
	ADDQ $64, AX
	DECQ CX
	JNZ  line
	RET

// func PrefetchWrite(p unsafe.Pointer, n int)
TEXT ·PrefetchWrite(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ n+8(FP), CX

line:
	PREFETCHW
	ADDQ $64, AX
	DECQ CX
	JNZ  line
	RET
