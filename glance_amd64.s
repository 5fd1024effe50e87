//go:build amd64 && !purego && !ringcache_heap && !race && !asan && !msan

#include "go_asm.h"
#include "textflag.h"
#include "glance_amd64.h"

// FIND looks for the hash in group R9 and the next one of its path, and asks for the record that its slot leads to, at
// R11 then, with R13 bytes to the end of its chunk. It goes to gone if the key is not there, and to back if it cannot say. It
// uses all registers but BX, DI, R8 and R14; DX only if it has found a record. (bucket.direct) Record is
// RECORD, or SOUGHT where somebody may write at the same time.
//
// The processor begins as many instructions ahead as its window holds, from the first on that
// has to wait for the record. So the record is asked for before that, and what need
// not wait for it is done in between: the more of the next lookup has begun then.
#define FIND(record) \
	MATCH; \
	JEQ   absent; \
match: \
	SLOT(next); \
found: \
	record; \
	ADDQ  CX, R11; \
	PREFETCHT0 (R11); \
	CMPB  ring_lines(SI), $4; \
	JCC   large; \
guess: \
	MOVWLZX ring_guess(SI), DX

// APART goes to other if the key at SI, of R9 bytes, has a byte in common with the CX bytes at DI. It uses AX and R13.
#define APART(other) \
	LEAQ  -1(SI)(R9*1), AX; \
	SUBQ  DI, AX; \
	LEAQ  -1(R9)(CX*1), R13; \
	CMPQ  AX, R13; \
	JCS   other

// READ appends the value of the record at R11 to dst. It goes to room if dst has no room for the CX bytes of it, and to
// undo if the record is not a short one of the key, or the value would be written over the key, which may be wanted once more. It uses
// all registers but BX, R10, R12 and R14.
#define READ(result) \
	MOVQ  dst_cap+24(FP), R8; \
	SUBQ  dst_len+16(FP), R8; \
	MOVQ  dst_base+8(FP), DI; \
	ADDQ  dst_len+16(FP), DI; \
	MOVQ  k_base+32(FP), SI; \
	MOVQ  k_len+40(FP), R9; \
	SAME(undo); \
	LIKELY; \
	CMPQ  CX, R8; \
	JGT   room; \
	APART(undo); \
	MOVQ  DI, SI; \
	MOVQ  CX, result; \
	COPY

// ALONE is what stands for STILL where nobody writes.
#define ALONE

// READS is the part of FIND and READ for what is less common. Sure is STILL(back), or ALONE.
#define READS(sure) \
	KEYS(undo); \
	COPIES; \
large: \
	/* Ask for the lines behind the first, which is waited for. */ \
	MOVBLZX ring_lines(SI), AX; \
	MOVQ  R11, R9; \
	JMP   asked; \
ask: \
	ADDQ  $64, R9; \
	PREFETCHT0 (R9); \
asked: \
	DECL  AX; \
	JGT   ask; /* and not if it is 0 by now */ \
	JMP   guess; \
next: \
	LEAL  -1(R11), CX; \
	ANDL  CX, R11; \
	JNE   match; \
absent: \
	PASSED(gone); \
	/* Something has passed the home group: on to the next one (probe.next). */ \
	TABLE; \
	CMPL  R13, $1; \
	JEQ   back; \
	INCL  R11; \
	XORL  AX, AX; \
	CMPL  R11, R13; \
	CMOVLCC AX, R11; \
	MOVQ  (bucket_index+index_pages)(R8), R9; \
	sure; \
	GROUP; \
	MATCH; \
	JEQ   absent2; \
match2: \
	SLOT(next2); \
	JMP   found; \
next2: \
	LEAL  -1(R11), CX; \
	ANDL  CX, R11; \
	JNE   match2; \
absent2: \
	PASSED(gone); \
	JMP   back

// GLANCE looks up the key with the hash in DX, in the cache at DI, as glanceHashed does, and returns.
#define GLANCE(result) \
	BUCKET; \
	MOVQ lane+56(FP), CX; \
	MOVQ Cache_shared(DI), AX; \
	MOVQ commons_known(AX), AX; \
	BTQ  CX, AX; \
	JCC  closed; \
	BEGIN(closed); \
	MOVQ (bucket_index+index_hint)(R8), R13; \
	TESTQ R13, R13; \
	JEQ  small; \
	HINTED; \
	PREFETCHT0 (R9); \
	PREFETCHT0 64(R9); /* the next group: some misses look there too */ \
	MOVQ lane+56(FP), CX; \
	CLAIM(closed); \
	STILL(back); /* so the hint is right */ \
search: \
	FIND(SOUGHT(back)); \
	TOUCH; \
	READ(result); \
	SURE(undo); \
	ADDQ $(const_laneOnce-const_laneBusy), (BX); \
	RET; \
small: \
	CLAIM(closed); \
	INDEX; \
	STILL(back); \
	HOMED; \
	JMP  search; \
	READS(STILL(back)); \
	HINTS; \
undo: \
	UNTOUCH; \
back: \
	SUBQ $const_laneBusy, (BX); \
closed: \
	MOVQ $const_glanceUnsure, result; \
	RET; \
gone: \
	ANDL $(const_bucketCount-1), DX; \
	MOVQ Cache_shared(DI), CX; \
	CMPL commons_stray(CX)(DX*4), $0; \
	JNE  back; \
	SURE(back); \
	MOVQ $(const_laneMiss+const_laneOnce-const_laneBusy), CX; \
	ADDQ CX, (BX); \
	MOVQ $const_glanceMiss, result; \
	RET; \
room: \
	UNTOUCH; \
	SUBQ $const_laneBusy, (BX); \
	NEGQ CX; \
	ADDQ $const_glanceUnsure, CX; \
	MOVQ CX, result; \
	RET

// func glance(c *Cache, dst, k []byte, lane uint) (h uint64, n int)
TEXT ·glance(SB), NOSPLIT, $0-80
	MOVQ c+0(FP), DI
	MOVQ k_base+32(FP), SI
	MOVQ k_len+40(FP), R9
	HASH
	MOVQ DX, h+64(FP)
	GLANCE(n+72(FP))

	HASHES

// func glanceHashed(c *Cache, dst, k []byte, lane uint, h uint64) int
TEXT ·glanceHashed(SB), NOSPLIT, $0-80
	MOVQ c+0(FP), DI
	MOVQ h+64(FP), DX
	GLANCE(ret+72(FP))

// func read(c *Cache, dst, k []byte, h uint64) int
TEXT ·read(SB), NOSPLIT, $0-72
	MOVQ c+0(FP), DI
	MOVQ h+56(FP), DX
	BUCKET
	CMPQ (bucket_index+index_pages+8)(R8), $0
	JEQ  back
	LOCKED
	FIND(RECORD)
	/* The slot's new content is stored only once the key is known to be the same. */
	RAISE
	CMPB  Cache_touches(DI), $0
	CMOVQEQ AX, R12
	READ(ret+64(FP))
	MOVQ  R10, (R12)
	RET

	READS(ALONE)

undo:
back:
	MOVQ $const_glanceUnsure, ret+64(FP)
	RET

gone:
	MOVQ $const_glanceMiss, ret+64(FP)
	RET

room:
	NEGQ CX
	ADDQ $const_glanceUnsure, CX
	MOVQ CX, ret+64(FP)
	RET
