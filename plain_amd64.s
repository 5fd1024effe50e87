//go:build amd64 && !purego && !ringcache_heap && !race && !asan && !msan

#include "go_asm.h"
#include "textflag.h"
#include "glance_amd64.h"
#include "prefetch_amd64.h"

// func askShort(c *Cache, k []byte) uint64
TEXT ·askShort(SB), NOSPLIT, $0-40
	MOVQ c+0(FP), DI
	MOVQ k_base+8(FP), SI
	MOVQ k_len+16(FP), R9
	HASH
	MOVQ DX, ret+32(FP)
	ASK
	PREFETCHT0 64(R9) // as prefetchPath

asked:
	RET

	HASHES
	HINTS

// func replace(b *bucket, k, v []byte, h uint64, p *aside) (ask lines, ok bool)
TEXT ·replace(SB), NOSPLIT, $0-89
	MOVQ b+0(FP), R8
	MOVQ h+56(FP), DX
	CMPQ (bucket_index+index_pages+8)(R8), $0
	JEQ  back
	LOCKED
	MATCH
	JEQ  back

match:
	SLOT(next)
	RECORD
	MOVQ k_base+8(FP), SI
	MOVQ k_len+16(FP), R9
	MOVQ p+64(FP), DI
	TESTQ DI, DI
	JEQ  now
	CMPB (bucket_index+index_patient)(R8), $0
	JEQ  now
	MOVQ v_len+40(FP), BX
	LEAQ (R9)(BX*1), AX
	MOVQ bucket_shared(R8), R12
	CMPQ AX, commons_asideMost(R12)
	JHI  long

	// Put it aside (bucket.putAsideLocked), if the place is free (aside.claim).
	XORL AX, AX // placeFree
	MOVL DX, R12
	ANDL $(const_bucketCount-1), R12
	INCL R12
	LOCK
	CMPXCHGQ R12, aside_state(DI)
	JNE  now
	LEAQ (R9)(BX*1), AX
	MOVQ DX, aside_hash(DI)
	MOVQ R10, aside_slot(DI)
	MOVL $0, aside_expiry(DI)
	MOVW R9, aside_klen(DI)
	MOVW BX, aside_vlen(DI)
	SHRQ $33, DX
	ORL  $const_tagUsed, DX
	MOVB DX, bucket_asideTag(R8)
	ADDQ $const_shortHeader, AX
	SHRQ $6, AX
	INCQ AX
	MOVQ R11, ask_chunk_addr+72(FP)
	MOVL CX, ask_off+80(FP)
	MOVL AX, ask_n+84(FP)
	LEAQ aside_data(DI), DI
	LEAQ -8(R9), AX
	XORL CX, CX
	TESTQ AX, AX
	JGE  words
	JMP  bytes

word:
	MOVQ (SI)(CX*1), R13
	MOVQ R13, (DI)(CX*1)
	ADDQ $8, CX

words:
	CMPQ CX, AX
	JLT  word
	MOVQ (SI)(AX*1), R13
	MOVQ R13, (DI)(AX*1)

keyed:
	LEAQ (DI)(R9*1), SI
	MOVQ v_base+32(FP), R11
	MOVQ BX, CX
	JMP  value

byte:
	MOVBLZX (SI)(CX*1), R13
	MOVB R13, (DI)(CX*1)
	INCQ CX

bytes:
	CMPQ CX, R9
	JLT  byte
	JMP  keyed

long:
	// It is written at once: ask for its lines, up to the end of the chunk, and 16 at most.
	SHRQ $6, AX
	LEAL -1(R13), BX
	SHRL $6, BX
	CMPQ AX, BX
	CMOVQCS AX, BX
	MOVL $15, AX
	CMPQ AX, BX
	CMOVQCS AX, BX
	LEAQ (R11)(CX*1), AX

line:
	PREFETCHW
	ADDQ $64, AX
	DECQ BX
	JGE  line

now:
	MOVQ $0, ask_chunk_addr+72(FP)
	ADDQ CX, R11
	SAME(back)
	CMPQ CX, v_len+40(FP)
	JNE  back
	MOVQ v_len+40(FP), CX // which is known already
	MOVQ R11, SI
	MOVQ v_base+32(FP), R11
	MOVL $0, ask_n+84(FP)

value:
	COPY
	MOVB $1, ok+88(FP)
	RET

	KEYS(back)
	COPIES

next:
	LEAL -1(R11), CX
	ANDL CX, R11
	JNE  match

back:
	MOVQ $0, ask_chunk_addr+72(FP) // which may be a pointer: the collector looks at it
	MOVL $0, ask_n+84(FP)
	MOVB $0, ok+88(FP)
	RET

// func takeUp(b *bucket, a *aside) bool
TEXT ·takeUp(SB), NOSPLIT, $0-17
	MOVQ b+0(FP), R8
	MOVQ a+8(FP), DI
	CMPL aside_expiry(DI), $0
	JNE  back
	MOVQ aside_slot(DI), R10
	TESTQ R10, R10
	JEQ  seek
	RING

found:
	RECORD
	MOVWLZX aside_klen(DI), R9
	MOVWLZX aside_vlen(DI), BX

	// Another core may have asked for its lines.
	LEAQ const_shortHeader(R9)(BX*1), R12
	SHRQ $6, R12
	LEAQ (R11)(CX*1), AX

line:
	PREFETCHW
	ADDQ $64, AX
	DECQ R12
	JGE  line

	LEAQ aside_data(DI), SI
	ADDQ CX, R11
	SAME(back)
	CMPQ CX, BX
	JNE  back
	MOVQ BX, CX // which is known already
	MOVQ R11, SI
	MOVWLZX aside_klen(DI), R9
	LEAQ aside_data(DI)(R9*1), R11
	COPY
	MOVB $1, ret+16(FP)
	RET

	KEYS(back)
	COPIES

seek:
	// It was put off.
	CMPQ (bucket_index+index_pages+8)(R8), $0
	JEQ  back
	MOVQ aside_hash(DI), DX
	LOCKED
	TAG
	TAGS
	JEQ  back

match:
	SLOT(next)
	JMP  found

next:
	LEAL -1(R11), CX
	ANDL CX, R11
	JNE  match

back:
	MOVB $0, ret+16(FP)
	RET

// func foresee(c *Cache, p *aside) (ask lines)
TEXT ·foresee(SB), NOSPLIT, $0-32
	MOVQ p+8(FP), BX
	CMPQ aside_state(BX), $const_placeFree
	JEQ  none
	CMPQ aside_slot(BX), $const_unsought
	JNE  none
	MOVQ c+0(FP), DI
	MOVQ aside_hash(BX), DX
	BUCKET
	BEGIN(none)
	MOVQ (bucket_index+index_hint)(R8), R13
	TESTQ R13, R13
	JEQ  none
	HINTED
	TAG
	TAGS
	JEQ  none

match:
	SLOT(next)
	SOUGHT(none)
	MOVWLZX aside_klen(BX), AX
	MOVWLZX aside_vlen(BX), R12
	LEAL const_shortHeader(AX)(R12*1), AX
	SHRL $6, AX
	INCL AX
	MOVQ R11, ask_chunk_addr+16(FP)
	MOVL CX, ask_off+24(FP)
	MOVL AX, ask_n+28(FP)
	RET

next:
	LEAL -1(R11), CX
	ANDL CX, R11
	JNE  match

none:
	MOVQ $0, ask_chunk_addr+16(FP) // as in replace
	MOVL $0, ask_n+28(FP)
	RET

	HINTS

// func isNew(b *bucket, h uint64) bool
TEXT ·isNew(SB), NOSPLIT, $0-17
	MOVQ b+0(FP), R8
	MOVQ h+8(FP), DX
	CMPQ (bucket_index+index_pages+8)(R8), $0
	JEQ  yes
	PATH
	MOVQ DX, DI
	SHRQ $33, DI
	ORL  $const_tagUsed, DI
	MOVBLZX DI, DI
	MOVQ $const_tagOnes, AX
	IMULQ AX, DI
	MOVQ DI, X1

group:
	AT
	MOVQ (R9), X0
	PCMPEQB X1, X0
	PMOVMSKB X0, R11
	ANDL $(1<<const_groupSlots-1), R11
	JNE  match

passed:
	PASSED(yes)
	NEXT(yes)

match:
	BSFL R11, CX
	MOVQ group_slots(R9)(CX*8), AX
	XORQ DX, AX
	SHRQ $const_slotHashAt, AX
	JEQ  no
	LEAL -1(R11), CX
	ANDL CX, R11
	JNE  match
	JMP  passed

yes:
	MOVB $1, ret+16(FP)
	RET

no:
	MOVB $0, ret+16(FP)
	RET

// ALIVE sets the bits of to for those of the four slots at addr that are alive. It uses
// Y0 and Y2 to Y5. (group.stale)
#define ALIVE(addr, to) \
	VMOVDQU addr, Y0; \
	VPSLLQ $(63-const_slotPosBits), Y0, Y2; \
	VBLENDVPD Y2, Y9, Y8, Y3; \
	VBLENDVPD Y2, Y11, Y10, Y4; \
	VPSUBQ Y3, Y0, Y5; \
	VPAND Y12, Y5, Y5; \
	VPCMPGTQ Y5, Y4, Y5; \
	VMOVMSKPD Y5, to

// func spaceAVX2(b *bucket, h uint64) (at uint32, i int)
TEXT ·spaceAVX2(SB), NOSPLIT, $0-32
	MOVQ b+0(FP), R8
	MOVQ h+8(FP), DX
	PATH
	VPBROADCASTQ (bucket_rings+ring_window+window_tail)(R8), Y8
	VPBROADCASTQ (bucket_rings+ring__size+ring_window+window_tail)(R8), Y9
	VPBROADCASTQ (bucket_rings+ring_window+window_size)(R8), Y10
	VPBROADCASTQ (bucket_rings+ring__size+ring_window+window_size)(R8), Y11
	VPBROADCASTQ (bucket_rings+ring_window+window_mask)(R8), Y12
	MOVQ $const_tagHighs, DI

group:
	AT
	MOVQ (R9), AX
	NOTQ AX
	ANDQ DI, AX
	JNE  empty
	ALIVE(group_slots(R9), AX)
	ALIVE((group_slots+24)(R9), CX)
	SHLL $3, CX
	ORL  CX, AX
	XORL $(1<<const_groupSlots-1), AX
	JNE  stale
	NEXT(none)

empty:
	BSFQ AX, AX
	SHRL $3, AX
	JMP  found

stale:
	BSFL AX, AX

found:
	MOVL SI, at+16(FP)
	MOVQ AX, i+24(FP)
	VZEROUPPER
	RET

none:
	MOVL $0, at+16(FP)
	MOVQ $-1, i+24(FP)
	VZEROUPPER
	RET
