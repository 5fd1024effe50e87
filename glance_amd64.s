//go:build amd64 && !purego && !ringcache_heap && !race && !asan && !msan

#include "funcdata.h"
#include "go_asm.h"
#include "textflag.h"

// What registers hold in glance, read and replace; the others say where they differ:
//
//	AX  free
//	BX  lane, from ENTER on
//	CX  free, counts of shifts
//	DX  hash
//	DI  cache
//	SI  bucket's number; ring, from SLOT on; key; dst
//	R8  bucket
//	R9  group; length of the key, from SAME on
//	R10 front; slot, from SLOT on
//	R11 home; matches; record, from RECORD on
//	R12 where the slot is, from SLOT on
//	R13 hint; free from RECORD on
//
// In replace and takeUp DI is the aside, and BX the length of the value there; in askKeys BX is
// where the key is, in noteRecords R13 where its hash is; for PATH see there. What a macro does
// not say it uses is left as it was.
//
// R14 and R15 belong to the runtime and the linker.

// The constants of XXH64 (Yann Collet, "xxHash fast digest algorithm",
// github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md).
#define PRIME1 0x9e3779b185ebca87
#define PRIME2 0xc2b2ae3d27d4eb4f
#define PRIME3 0x165667b19e3779f9
#define PRIME4 0x85ebca77c2b2ae63
#define PRIME5 0x27d4eb2f165667c5

// HASH sets DX to the hash of the key at SI, of R9 bytes, at most mostHashed. It uses AX, CX,
// SI and R10 to R13. (commons.hash)
#define HASH \
	MOVQ  $PRIME1, R10; \
	MOVQ  $PRIME2, R11; \
	MOVQ  $PRIME3, R13; \
	MOVQ  $PRIME5, DX; \
	ADDQ  R9, DX; \
	MOVQ  R9, CX; \
	SUBQ  $8, CX; \
	JLT   hash4; \
	MOVQ  $PRIME4, R12; \
hash8: \
	MOVQ  (SI), AX; \
	ADDQ  $8, SI; \
	IMULQ R11, AX; \
	ROLQ  $31, AX; \
	IMULQ R10, AX; \
	XORQ  AX, DX; \
	ROLQ  $27, DX; \
	IMULQ R10, DX; \
	ADDQ  R12, DX; \
	SUBQ  $8, CX; \
	JGE   hash8; \
	CMPQ  CX, $-8; \
	JNE   hash4; \
hashed: \
	MOVQ  DX, AX; \
	SHRQ  $33, AX; \
	XORQ  AX, DX; \
	IMULQ R11, DX; \
	MOVQ  DX, AX; \
	SHRQ  $29, AX; \
	XORQ  AX, DX; \
	IMULQ R13, DX; \
	MOVQ  DX, AX; \
	SHRQ  $32, AX; \
	XORQ  DX, AX; \
	MOVQ  Cache_shared(DI), CX; \
	XORQ  commons_seed(CX), AX; \
	MULQ  commons_seed+8(CX); \
	XORQ  AX, DX

// HASHES is the part of HASH for the bytes behind the last whole word; CX is 8 less
// than there are.
#define HASHES \
hash4: \
	ADDQ  $4, CX; \
	JLT   hash1; \
	MOVL  (SI), AX; \
	ADDQ  $4, SI; \
	SUBQ  $4, CX; \
	IMULQ R10, AX; \
	XORQ  AX, DX; \
	ROLQ  $23, DX; \
	IMULQ R11, DX; \
	ADDQ  R13, DX; \
hash1: \
	ADDQ  $4, CX; \
	JEQ   hashed; \
	MOVQ  $PRIME5, R12; \
hashByte: \
	MOVBLZX (SI), AX; \
	INCQ  SI; \
	IMULQ R12, AX; \
	XORQ  AX, DX; \
	ROLQ  $11, DX; \
	IMULQ R10, DX; \
	DECQ  CX; \
	JNE   hashByte; \
	JMP   hashed

// BUCKET finds the bucket of the hash.
#define BUCKET \
	MOVQ  Cache_mask(DI), SI; \
	ANDQ  DX, SI; \
	IMUL3Q $bucket__size, SI, R8; \
	LEAQ  Cache_buckets(DI)(R8*1), R8

// HOME sets R11 to the home of the hash, given the groups of the geometries cur in R11,
// old in R12, and front in R10. It uses AX and R12. Carry says whether it is in old.
// (index.home)
#define HOME \
	MOVQ  DX, AX; \
	SHRQ  $const_slotHashAt, AX; \
	IMULQ AX, R11; \
	SHRQ  $const_slotHashBits, R11; \
	IMULQ AX, R12; \
	SHRQ  $const_slotHashBits, R12; \
	CMPL  R12, R10; \
	CMOVLCS R12, R11

// GROUP sets R9 to group R11 of the pages in R9. It uses CX, R11 and R12. (index.group)
#define GROUP \
	MOVBLZX (bucket_index+index_pageShift)(R8), CX; \
	MOVL  R11, R12; \
	SHRL  CX, R12; \
	MOVQ  (R9)(R12*8), R9; \
	SHLL  CX, R12; \
	SUBL  R12, R11; \
	SHLQ  $const_groupShift, R11; \
	ADDQ  R11, R9

// HINTED finds the home group by the hint in R13, which may be out of date. It sets R10 to front.
#define HINTED \
	MOVL (bucket_index+index_front)(R8), R10; \
	MOVL (indexHint_cur+table_groups)(R13), R11; \
	MOVL (indexHint_old+table_groups)(R13), R12; \
	MOVQ indexHint_pages(R13), R9; \
	HOME; \
	GROUP

// LOCKED finds the home group under the lock.
#define LOCKED \
	MOVL (bucket_index+index_front)(R8), R10; \
	MOVL (bucket_index+index_cur+table_groups)(R8), R11; \
	MOVL (bucket_index+index_old+table_groups)(R8), R12; \
	MOVQ (bucket_index+index_pages)(R8), R9; \
	HOME; \
	GROUP

// OPEN sets CX to the number of the lane, or goes to closed. It uses AX.
#define OPEN(lane) \
	MOVQ  lane, CX; \
	MOVQ  (bucket_mu+bucketLock_open)(R8), AX; \
	BTQ   CX, AX; \
	JCC   closed

// ENTER takes lane CX, or goes to closed with nothing taken, or to back with the lane
// taken. It uses AX and R12. (lane.enter)
#define ENTER \
	IMUL3Q $const_laneStride, CX, R12; \
	ADDQ  SI, R12; \
	MOVQ  Cache_lanes(DI), BX; \
	LEAQ  (BX)(R12*8), BX; \
	MOVQ  (BX), AX; \
	TESTL $(const_laneBusy+const_laneFull), AX; \
	JNE   closed; \
	LEAQ  const_laneBusy(AX), R12; \
	LOCK; \
	CMPXCHGQ R12, (BX); \
	JNE   closed; \
	MOVQ  (bucket_mu+bucketLock_open)(R8), AX; \
	BTQ   CX, AX; \
	JCC   back

// MATCH sets R11 to a word with a bit for each slot of the group that has the hash's
// tag, or goes to back if that is the tag of a Set that was put aside. It uses AX, R10,
// X0 and X1. (group.matches)
#define MATCH \
	MOVQ  DX, R10; \
	SHRQ  $33, R10; \
	ORL   $const_tagUsed, R10; \
	MOVBLZX R10, R10; \
	CMPB  R10, (bucket_index+index_aside)(R8); \
	JEQ   back; \
	MOVQ  $const_tagOnes, AX; \
	IMULQ AX, R10; \
	MOVQ  R10, X1; \
	MOVQ  (R9), X0; \
	PCMPEQB X0, X1; \
	PMOVMSKB X1, R11; \
	ANDL  $(1<<const_groupSlots-1), R11

// RING sets SI to the ring of the slot.
#define RING \
	MOVQ  R10, SI; \
	SHRQ  $const_slotPosBits, SI; \
	ANDL  $1, SI; \
	IMUL3Q $ring__size, SI, SI; \
	LEAQ  bucket_rings(R8)(SI*1), SI

// SLOT takes the first of the matches, or goes to next if it is not of a live record
// with such a hash. It sets R10 to the slot, R12 to where it is, and SI to the record's
// ring, and uses CX. (bucket.likely)
#define SLOT(next) \
	BSFL  R11, CX; \
	LEAQ  group_slots(R9)(CX*8), R12; \
	MOVQ  (R12), R10; \
	MOVQ  R10, CX; \
	XORQ  DX, CX; \
	SHRQ  $const_slotHashAt, CX; \
	JNE   next; \
	RING; \
	MOVQ  R10, CX; \
	SUBQ  (ring_window+window_tail)(SI), CX; \
	ANDQ  (ring_window+window_mask)(SI), CX; \
	CMPQ  CX, (ring_window+window_size)(SI); \
	JCC   next

// RECORD sets R11 to the chunk of the slot's record, CX to the offset in it, and R13
// to the bytes from there to its end. (ring.run)
#define RECORD \
	MOVBLZX ring_shift(SI), CX; \
	MOVQ  R10, R11; \
	SHRQ  CX, R11; \
	MOVQ  (ring_slots+8)(SI), R13; \
	DECQ  R13; \
	ANDQ  R13, R11; \
	MOVQ  ring_slots(SI), R13; \
	MOVQ  (R13)(R11*8), R11; \
	MOVL  $1, R13; \
	SHLL  CX, R13; \
	LEAL  -1(R13), CX; \
	ANDL  R10, CX; \
	SUBL  CX, R13

// SAME goes to other unless the record at offset CX of chunk R11, with R13 bytes to its
// end, is a short one without an expiry and has the key at SI, of R9 bytes. It sets R11 to
// its value and CX to the value's length. It uses AX and R13. (ring.shortValue)
#define SAME(other) \
	ADDQ  CX, R11; \
	CMPL  R13, $4; \
	JLT   other; \
	MOVL  (R11), CX; \
	MOVL  CX, AX; \
	ANDL  $(const_longBit+const_maxShortKey), AX; \
	CMPQ  AX, R9; \
	JNE   other; \
	SHRL  $8, CX; \
	MOVWLZX CX, CX; \
	LEAQ  const_shortHeader(R9)(CX*1), AX; \
	CMPQ  AX, R13; \
	JGT   other; \
	ADDQ  $const_shortHeader, R11; \
	LEAQ  -8(R9), R13; \
	CMPQ  R13, $8; \
	JHI   keys; \
	MOVQ  (SI), AX; \
	CMPQ  AX, (R11); \
	JNE   other; \
	MOVQ  (SI)(R13*1), AX; \
	CMPQ  AX, (R11)(R13*1); \
	JNE   other; \
same: \
	ADDQ  R9, R11

// KEYS is the part of SAME for keys of other than 8 to 16 bytes; R13 is 8 less than that.
#define KEYS(other) \
keys: \
	CMPQ  R9, $const_maxShortKey; \
	JHI   other; \
	CMPQ  R9, $4; \
	JCS   under4; \
	CMPQ  R9, $8; \
	JCS   under8; \
eight: \
	MOVQ  (SI)(R13*1), AX; \
	CMPQ  AX, (R11)(R13*1); \
	JNE   other; \
	SUBQ  $8, R13; \
	JGT   eight; \
	MOVQ  (SI), AX; \
	CMPQ  AX, (R11); \
	JNE   other; \
	JMP   same; \
under8: \
	MOVL  (SI), AX; \
	CMPL  AX, (R11); \
	JNE   other; \
	MOVL  -4(SI)(R9*1), AX; \
	CMPL  AX, -4(R11)(R9*1); \
	JNE   other; \
	JMP   same; \
under4: \
	MOVQ  R9, R13; \
one: \
	DECQ  R13; \
	JLT   same; \
	MOVBLZX (SI)(R13*1), AX; \
	CMPB  AX, (R11)(R13*1); \
	JNE   other; \
	JMP   one

// COPY copies CX bytes from R11 to SI: the first ones and the
// last ones, which may meet. It uses AX, CX, R9, R11, SI, X0 to X7, and Y0 to Y3 where it can.
#define COPY \
	CMPQ  CX, $64; \
	JHI   copy128; \
	CMPQ  CX, $16; \
	JCS   copy8; \
	MOVOU (R11), X0; \
	MOVOU -16(R11)(CX*1), X3; \
	CMPQ  CX, $32; \
	JLS   two; \
	MOVOU 16(R11), X1; \
	MOVOU -32(R11)(CX*1), X2; \
	MOVOU X1, 16(SI); \
	MOVOU X2, -32(SI)(CX*1); \
two: \
	MOVOU X0, (SI); \
	MOVOU X3, -16(SI)(CX*1); \
copied:

// COPIES is the part of COPY for less than 16 and more than 64 bytes.
#define COPIES \
copy8: \
	CMPQ  CX, $8; \
	JCS   copy4; \
	MOVQ  (R11), AX; \
	MOVQ  -8(R11)(CX*1), R9; \
	MOVQ  AX, (SI); \
	MOVQ  R9, -8(SI)(CX*1); \
	JMP   copied; \
copy4: \
	CMPQ  CX, $4; \
	JCS   copy1; \
	MOVL  (R11), AX; \
	MOVL  -4(R11)(CX*1), R9; \
	MOVL  AX, (SI); \
	MOVL  R9, -4(SI)(CX*1); \
	JMP   copied; \
copy1: \
	DECQ  CX; \
	JLT   copied; \
	MOVB  (R11)(CX*1), AX; \
	MOVB  AX, (SI)(CX*1); \
	JMP   copy1; \
copy128: \
	CMPB  ·hasAVX(SB), $0; \
	JEQ   copySSE; \
	VMOVDQU (R11), Y0; \
	VMOVDQU 32(R11), Y1; \
	VMOVDQU -64(R11)(CX*1), Y2; \
	VMOVDQU -32(R11)(CX*1), Y3; \
	LEAQ  -64(SI)(CX*1), R9; \
	CMPQ  CX, $128; \
	JHI   copyAVX; \
copiedAVX: \
	VMOVDQU Y0, (SI); \
	VMOVDQU Y1, 32(SI); \
	VMOVDQU Y2, (R9); \
	VMOVDQU Y3, 32(R9); \
	VZEROUPPER; \
	JMP   copied; \
copyAVX: \
	VMOVDQU Y0, (SI); \
	VMOVDQU Y1, 32(SI); \
	ADDQ  $64, R11; \
	ADDQ  $64, SI; \
	VMOVDQU (R11), Y0; \
	VMOVDQU 32(R11), Y1; \
	SUBQ  $64, CX; \
	CMPQ  CX, $128; \
	JHI   copyAVX; \
	JMP   copiedAVX; \
copySSE: \
	MOVOU -64(R11)(CX*1), X4; \
	MOVOU -48(R11)(CX*1), X5; \
	MOVOU -32(R11)(CX*1), X6; \
	MOVOU -16(R11)(CX*1), X7; \
	LEAQ  -64(SI)(CX*1), R9; \
	SUBQ  $64, CX; \
copy64: \
	MOVOU (R11), X0; \
	MOVOU 16(R11), X1; \
	MOVOU 32(R11), X2; \
	MOVOU 48(R11), X3; \
	MOVOU X0, (SI); \
	MOVOU X1, 16(SI); \
	MOVOU X2, 32(SI); \
	MOVOU X3, 48(SI); \
	ADDQ  $64, R11; \
	ADDQ  $64, SI; \
	SUBQ  $64, CX; \
	JHI   copy64; \
	MOVOU X4, (R9); \
	MOVOU X5, 16(R9); \
	MOVOU X6, 32(R9); \
	MOVOU X7, 48(R9); \
	JMP   copied

// READ looks for the key in group R9 and the next one of its path, appends its value to
// dst, and raises its frequency. It goes to gone if the key is not there, to room if dst
// has no room for the CX bytes of its value, and to back if it cannot say. It uses all
// registers but BX, DX, DI and R8. (bucket.direct)
#define READ(result) \
	MATCH; \
	TESTL R11, R11; \
	JEQ   absent; \
match: \
	SLOT(next); \
found: \
	RECORD; \
	CMPB  ring_lines(SI), $4; \
	JCC   large; \
record: \
	MOVQ  k_base+32(FP), SI; \
	MOVQ  k_len+40(FP), R9; \
	SAME(back); \
	MOVQ  dst_cap+24(FP), AX; \
	MOVQ  dst_len+16(FP), R13; \
	SUBQ  R13, AX; \
	CMPQ  CX, AX; \
	JGT   room; \
	MOVQ  dst_base+8(FP), SI; \
	ADDQ  R13, SI; \
	MOVQ  CX, result; \
	COPY; \
	CMPB  Cache_touches(DI), $0; \
	JEQ   done; \
	/* Where it is as high as can be, one more overflows into the hash. Then it is */ \
	/* written over the argument c (slotRef.touch, storeUnless). */ \
	MOVQ  $const_slotFreqOne, R13; \
	ADDQ  R10, R13; \
	XORQ  R13, R10; \
	LEAQ  c+0(FP), AX; \
	BTQ   $const_slotHashAt, R10; \
	CMOVQCS AX, R12; \
	MOVQ  R13, (R12); \
done:

// READS is the part of READ for what is less common.
#define READS \
	KEYS(back); \
	COPIES; \
large: \
	/* Ask for the lines behind the first, which is waited for. */ \
	MOVBLZX ring_lines(SI), AX; \
	LEAQ  (R11)(CX*1), R9; \
	JMP   asked; \
ask: \
	ADDQ  $64, R9; \
	PREFETCHT0 (R9); \
asked: \
	DECL  AX; \
	JNE   ask; \
	JMP   record; \
next: \
	LEAL  -1(R11), CX; \
	ANDL  CX, R11; \
	JNE   match; \
absent: \
	CMPB  7(R9), $0; \
	JEQ   gone; \
	/* Something has passed the home group: on to the next one (probe.next). */ \
	MOVL  (bucket_index+index_front)(R8), R10; \
	MOVL  (bucket_index+index_cur+table_groups)(R8), R11; \
	MOVL  (bucket_index+index_old+table_groups)(R8), R12; \
	MOVL  R11, R13; \
	MOVL  R12, SI; \
	HOME; \
	CMOVLCS SI, R13; \
	CMPL  R13, $1; \
	JEQ   back; \
	INCL  R11; \
	XORL  AX, AX; \
	CMPL  R11, R13; \
	CMOVLCC AX, R11; \
	MOVQ  (bucket_index+index_pages)(R8), R9; \
	GROUP; \
	MATCH; \
	TESTL R11, R11; \
	JEQ   absent2; \
match2: \
	SLOT(next2); \
	JMP   found; \
next2: \
	LEAL  -1(R11), CX; \
	ANDL  CX, R11; \
	JNE   match2; \
absent2: \
	CMPB  7(R9), $0; \
	JEQ   gone; \
	JMP   back

// func glance(c *Cache, dst, k []byte, lane uint) (h uint64, n int)
TEXT ·glance(SB), NOSPLIT, $0-80
	MOVQ c+0(FP), DI
	MOVQ k_base+32(FP), SI
	MOVQ k_len+40(FP), R9
	HASH
	MOVQ DX, h+64(FP)
	JMP  ·glanceHashed(SB) // its frame is the same

	HASHES

// func glanceHashed(c *Cache, dst, k []byte, lane uint, h uint64) int
TEXT ·glanceHashed(SB), NOSPLIT, $0-80
	MOVQ c+0(FP), DI
	MOVQ h+64(FP), DX
	BUCKET
	OPEN(lane+56(FP))
	MOVQ (bucket_index+index_hint)(R8), R13
	TESTQ R13, R13
	JEQ  small
	MOVL CX, BX
	HINTED
	PREFETCHT0 (R9)
	PREFETCHT0 64(R9) // the next group: a quarter of the misses look there too
	MOVL BX, CX
	ENTER

	// The hint was right, if nothing has changed.
	CMPQ R13, (bucket_index+index_hint)(R8)
	JNE  back
	CMPL R10, (bucket_index+index_front)(R8)
	JNE  back

search:
	READ(ret+72(FP))
	ADDQ $(const_laneOnce-const_laneBusy), (BX)
	RET

small:
	ENTER
	CMPQ (bucket_index+index_pages+8)(R8), $0
	JEQ  back
	LOCKED
	JMP  search

	READS

back:
	SUBQ $const_laneBusy, (BX)

closed:
	MOVQ $const_glanceUnsure, ret+72(FP)
	RET

gone:
	ANDL $(const_bucketCount-1), DX
	MOVQ Cache_shared(DI), CX
	CMPL commons_stray(CX)(DX*4), $0
	JNE  back
	MOVQ $(const_laneMiss+const_laneOnce-const_laneBusy), CX
	ADDQ CX, (BX)
	MOVQ $const_glanceMiss, ret+72(FP)
	RET

room:
	SUBQ $const_laneBusy, (BX)
	NEGQ CX
	ADDQ $const_glanceUnsure, CX
	MOVQ CX, ret+72(FP)
	RET

// func read(c *Cache, dst, k []byte, h uint64) int
TEXT ·read(SB), NOSPLIT, $0-72
	MOVQ c+0(FP), DI
	MOVQ h+56(FP), DX
	BUCKET
	CMPQ (bucket_index+index_pages+8)(R8), $0
	JEQ  back
	LOCKED
	READ(ret+64(FP))
	RET

	READS

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

// func askHome(c *Cache, k []byte) uint64
TEXT ·askHome(SB), NOSPLIT, $0-40
	MOVQ c+0(FP), DI
	MOVQ k_base+8(FP), SI
	MOVQ k_len+16(FP), R9
	HASH
	MOVQ DX, ret+32(FP)
	BUCKET
	MOVQ (bucket_index+index_hint)(R8), R13
	TESTQ R13, R13
	JEQ  asked
	HINTED
	PREFETCHT0 (R9)

asked:
	RET

	HASHES

// PREFETCHW asks for the line at AX, to be written to. The assembler does not know it.
#define PREFETCHW BYTE $0x0F; BYTE $0x0D; BYTE $0x08

// func replace(b *bucket, k, v []byte, h uint64, prompt bool) (ask lines, ok bool)
TEXT ·replace(SB), NOSPLIT, $0-89
	MOVQ b+0(FP), R8
	MOVQ h+56(FP), DX
	CMPQ (bucket_index+index_pages+8)(R8), $0
	JEQ  back
	LOCKED
	MATCH
	TESTL R11, R11
	JEQ  back

match:
	SLOT(next)
	RECORD
	MOVQ k_base+8(FP), SI
	MOVQ k_len+16(FP), R9
	MOVQ bucket_aside(R8), DI
	TESTQ DI, DI
	JEQ  now
	CMPB prompt+64(FP), $0
	JNE  now
	MOVQ v_len+40(FP), BX
	LEAQ (R9)(BX*1), AX
	CMPQ AX, $const_asideMost
	JHI  long

	// Put it aside (bucket.putAsideLocked).
	MOVQ DX, aside_hash(DI)
	MOVQ R10, aside_slot(DI)
	MOVL $0, aside_expiry(DI)
	MOVW R9, aside_klen(DI)
	MOVW BX, aside_vlen(DI)
	SHRQ $33, DX
	ORL  $const_tagUsed, DX
	MOVB DX, (bucket_index+index_aside)(R8)
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
	SAME(back)
	CMPQ CX, v_len+40(FP)
	JNE  back
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
	MOVB $0, ok+88(FP)
	RET

// func takeUp(b *bucket) bool
TEXT ·takeUp(SB), NOSPLIT, $0-9
	MOVQ b+0(FP), R8
	MOVQ bucket_aside(R8), DI
	CMPL aside_expiry(DI), $0
	JNE  back
	MOVQ aside_slot(DI), R10
	RING
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
	SAME(back)
	CMPQ CX, BX
	JNE  back
	MOVQ R11, SI
	MOVWLZX aside_klen(DI), R9
	LEAQ aside_data(DI)(R9*1), R11
	COPY
	MOVB $0, (bucket_index+index_aside)(R8)
	MOVB $1, ret+8(FP)
	RET

	KEYS(back)
	COPIES

back:
	MOVB $0, ret+8(FP)
	RET

// PATH sets SI to the home of the hash, R13 to the groups of its table, BX to how many groups
// of the path are behind the home, and R10 to the step to the first of them. It uses AX, R11
// and R12. (index.path)
#define PATH \
	MOVL (bucket_index+index_front)(R8), R10; \
	MOVL (bucket_index+index_cur+table_groups)(R8), R11; \
	MOVL (bucket_index+index_old+table_groups)(R8), R12; \
	MOVL R11, R13; \
	MOVL R12, SI; \
	HOME; \
	CMOVLCS SI, R13; \
	MOVL R11, SI; \
	MOVL $const_probeGroups, BX; \
	CMPL R13, BX; \
	CMOVLCS R13, BX; \
	DECL BX; \
	MOVL $1, R10

// NEXT goes to group with the next of the path in SI, or to end after the last. It counts
// in BX and R10. (probe.next)
#define NEXT(end) \
	SUBL $1, BX; \
	JCS  end; \
	ADDL R10, SI; \
	INCL R10; \
wrap: \
	CMPL SI, R13; \
	JCS  group; \
	SUBL R13, SI; \
	JMP  wrap

// AT sets R9 to group SI of the path. It uses CX, R11 and R12.
#define AT \
	MOVL SI, R11; \
	MOVQ (bucket_index+index_pages)(R8), R9; \
	GROUP

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
	CMPB 7(R9), $0
	JEQ  yes
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
