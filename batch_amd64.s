//go:build amd64 && !purego && !ringcache_heap && !race && !asan && !msan

#include "funcdata.h"
#include "go_asm.h"
#include "textflag.h"
#include "glance_amd64.h"

// func glanceKeys(c *Cache, dst []byte, keys [][]byte, hashes *uint64, lens *int, lane uint) (n, end int)
TEXT ·glanceKeys(SB), NOSPLIT, $80-96
	NO_LOCAL_POINTERS
	MOVQ $0, n+80(FP)
	MOVQ dst_base+8(FP), AX
	MOVQ AX, 8(SP)
	MOVQ dst_cap+24(FP), AX
	MOVQ AX, 24(SP)
	MOVQ lane+72(FP), AX
	MOVQ AX, 56(SP)

key:
	MOVQ dst_len+16(FP), AX
	MOVQ AX, end+88(FP)
	MOVQ n+80(FP), BX
	CMPQ BX, keys_len+40(FP)
	JEQ  done
	MOVQ AX, 16(SP)
	MOVQ c+0(FP), AX
	MOVQ AX, 0(SP)
	MOVQ keys_base+32(FP), AX
	MOVOU (AX), X0
	MOVOU X0, 32(SP)
	ADDQ $24, AX
	MOVQ AX, keys_base+32(FP)
	MOVQ hashes+56(FP), AX
	MOVQ (AX)(BX*8), CX
	MOVQ CX, 64(SP)
	CALL ·glanceHashed(SB)
	MOVQ 72(SP), AX
	MOVQ n+80(FP), BX
	CMPQ AX, $const_glanceUnsure
	JLE  done
	MOVQ lens+64(FP), CX
	MOVQ AX, (CX)(BX*8)
	INCQ BX
	MOVQ BX, n+80(FP)
	TESTQ AX, AX
	JLT  key
	ADDQ AX, dst_len+16(FP)
	JMP  key

done:
	RET

// func askKeys(c *Cache, keys [][]byte, hashes *uint64) int
TEXT ·askKeys(SB), NOSPLIT, $0-48
	MOVQ c+0(FP), DI
	MOVQ keys_base+8(FP), BX
	MOVQ keys_len+16(FP), AX
	MOVQ AX, ret+40(FP)
	TESTQ AX, AX
	JEQ  done

key:
	MOVQ 0(BX), SI
	MOVQ 8(BX), R9
	CMPQ R9, $const_mostHashed
	JHI  done
	HASH
	MOVQ hashes+32(FP), AX
	MOVQ DX, (AX)
	ADDQ $8, AX
	MOVQ AX, hashes+32(FP)
	BUCKET
	MOVQ (bucket_index+index_hint)(R8), R13
	TESTQ R13, R13
	JEQ  asked
	HINTED
	PREFETCHT0 (R9)

asked:
	ADDQ $24, BX
	DECQ keys_len+16(FP)
	JNE  key

done:
	MOVQ keys_len+16(FP), AX
	SUBQ AX, ret+40(FP)
	RET

	HASHES

// func noteRecords(c *Cache, hashes *[batchSize]uint64, records *[batchSize]lines, n int, lane uint) (unknown int)
TEXT ·noteRecords(SB), NOSPLIT, $8-48
	NO_LOCAL_POINTERS
	MOVQ c+0(FP), DI
	MOVQ hashes+8(FP), R13
	MOVQ n+24(FP), CX
	LEAQ (R13)(CX*8), CX
	MOVQ CX, end-8(SP)
	MOVQ $0, unknown+40(FP)

record:
	MOVQ (R13), DX
	BUCKET
	OPEN(lane+32(FP))
	ENTER
	CMPQ (bucket_index+index_pages+8)(R8), $0
	JEQ  back
	LOCKED
	MATCH
	TESTL R11, R11
	JEQ  absent

match:
	SLOT(next)
	MOVQ R13, R9
	RECORD
	MOVQ R9, R13
	MOVBLZX ring_lines(SI), R12
	SUBQ $const_laneBusy, (BX)
	MOVQ records+16(FP), AX
	MOVQ R11, lines_chunk(AX)
	MOVL CX, lines_off(AX)
	MOVL R12, lines_n(AX)

recorded:
	ADDQ $lines__size, AX
	MOVQ AX, records+16(FP)
	ADDQ $8, R13
	CMPQ R13, end-8(SP)
	JNE  record

	// All are noted: now ask for them.
	MOVQ n+24(FP), CX

lines:
	SUBQ $lines__size, AX
	MOVL lines_n(AX), R12
	TESTL R12, R12
	JEQ  asked
	CMPL R12, $const_linesUnknown
	JEQ  unknown
	MOVL lines_off(AX), R9
	ADDQ lines_chunk(AX), R9

line:
	PREFETCHT0 (R9)
	ADDQ $64, R9
	DECL R12
	JNE  line

asked:
	DECQ CX
	JNE  lines
	RET

unknown:
	INCQ unknown+40(FP)
	JMP  asked

next:
	LEAL -1(R11), CX
	ANDL CX, R11
	JNE  match

absent:
	SUBQ $const_laneBusy, (BX)
	MOVQ records+16(FP), AX
	MOVL $0, lines_n(AX)
	JMP  recorded

back:
	SUBQ $const_laneBusy, (BX)

closed:
	MOVQ records+16(FP), AX
	MOVL $const_linesUnknown, lines_n(AX)
	JMP  recorded
