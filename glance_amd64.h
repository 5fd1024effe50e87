// The steps that glances (glance_amd64.s), batches (batch_amd64.s) and plain Sets (plain_amd64.s)
// are made of.

// What registers hold in glance, read and replace; the others say where they differ:
//
//	AX  free
//	BX  lane, from ENTER on
//	CX  free, counts of shifts
//	DX  hash; in READ, the length of nearly all values once there is a record
//	DI  cache; in READ, where the value is to go once there is a record
//	SI  bucket's number; ring, from SLOT on; key; dst
//	R8  bucket; in READ, the room in dst once there is a record
//	R9  group; length of the key, from SAME on
//	R10 front; slot, from SLOT on
//	R11 home; matches; record, from RECORD on
//	R12 where the slot is, from SLOT on
//	R13 hint; free from RECORD on
//
// In replace and takeUp DI is the aside, and BX the length of the value there; in askKeys BX is
// where the key is, in noteRecords R13 where its hash is, in getKeys BX the quest once lanes are
// taken; for PATH see there. What a macro does not say it uses is left as it was.
//
// R15 belongs to the linker. R14 is the runtime's in Go code, which loads it again after a call of assembly; it is what BEGIN has
// noted.

// The constants of XXH64 (Yann Collet, "xxHash fast digest algorithm",
// github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md).
#define PRIME1 0x9e3779b185ebca87
#define PRIME2 0xc2b2ae3d27d4eb4f
#define PRIME3 0x165667b19e3779f9
#define PRIME4 0x85ebca77c2b2ae63
#define PRIME5 0x27d4eb2f165667c5

// HASH8 takes 8 bytes of the key into the hash.
#define HASH8(bytes) \
	MOVQ  bytes, AX; \
	IMULQ R11, AX; \
	ROLQ  $31, AX; \
	IMULQ R10, AX; \
	XORQ  AX, DX; \
	ROLQ  $27, DX; \
	IMULQ R10, DX; \
	ADDQ  R12, DX

// HASH sets DX to the hash of the key at SI, of R9 bytes, at most mostHashed. It uses AX, CX,
// SI and R10 to R13. (commons.hash)
#define HASH \
	MOVQ  $PRIME1, R10; \
	MOVQ  $PRIME2, R11; \
	MOVQ  $PRIME3, R13; \
	MOVQ  $PRIME4, R12; \
	CMPQ  R9, $16; \
	JNE   hashAny; \
	MOVQ  $(PRIME5+16), DX; \
	HASH8(0(SI)); \
	HASH8(8(SI)); \
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

// HASHES is the part of HASH for keys of other than 16 bytes; CX is 8 less than there are left.
#define HASHES \
hashAny: \
	MOVQ  $PRIME5, DX; \
	ADDQ  R9, DX; \
	MOVQ  R9, CX; \
	SUBQ  $8, CX; \
	JLT   hash4; \
hash8: \
	HASH8(0(SI)); \
	ADDQ  $8, SI; \
	SUBQ  $8, CX; \
	JGE   hash8; \
	CMPQ  CX, $-8; \
	JEQ   hashed; \
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

// SHARE sets to, which is a number of groups, to the one that is the home of the hash bits in
// AX. (table.home)
#define SHARE(to) \
	IMULQ AX, to; \
	SHRQ  $const_slotHashBits, to

// HOME sets R11 to the home of the hash, given the groups of the geometries cur in R11,
// old in R12, and front in R10. It uses AX and R12. Carry says whether it is in old.
// (index.home)
#define HOME \
	MOVQ  DX, AX; \
	SHRQ  $const_slotHashAt, AX; \
	SHARE(R11); \
	SHARE(R12); \
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
	MOVQ indexHint_pages(R13), R9; \
	MOVQ  DX, AX; \
	SHRQ  $const_slotHashAt, AX; \
	SHARE(R11); \
	TESTL R10, R10; \
	JNE  growing; \
grown: \
	GROUP

// HINTS is the part of HINTED for an index that grows.
#define HINTS \
growing: \
	MOVL (indexHint_old+table_groups)(R13), R12; \
	SHARE(R12); \
	CMPL R12, R10; \
	CMOVLCS R12, R11; \
	JMP  grown

// ASK finds the bucket of the hash and asks for its home group; it goes to asked if it need not.
#define ASK \
	BUCKET; \
	MOVQ (bucket_index+index_hint)(R8), R13; \
	TESTQ R13, R13; \
	JEQ  asked; \
	HINTED; \
	PREFETCHT0 (R9)

// LOCKED finds the home group under the lock.
#define LOCKED \
	INDEX; \
	HOMED

// INDEX is the part of LOCKED that reads what the index is: it sets R10 to front, R11 and R12 to the groups of cur and old,
// and R9 to the pages, or goes to back if there are none.
#define INDEX \
	MOVL (bucket_index+index_front)(R8), R10; \
	MOVL (bucket_index+index_cur+table_groups)(R8), R11; \
	MOVL (bucket_index+index_old+table_groups)(R8), R12; \
	MOVQ (bucket_index+index_pages)(R8), R9; \
	TESTQ R9, R9; \
	JEQ  back

// HOMED is the part of LOCKED that goes by that.
#define HOMED \
	HOME; \
	GROUP

// OPEN sets CX to the number of the lane, or goes to closed. It uses AX.
#define OPEN(lane) \
	MOVQ  lane, CX; \
	MOVQ  (bucket_mu+bucketLock_open)(R8), AX; \
	BTQ   CX, AX; \
	JCC   closed

// CLAIM takes lane CX, which is at BX then, open or not, or goes to busy. It uses R12. The bit of laneBusy is 0. Who is inside writes
// the lane without a lock; that is the only bit that others set, and it is set already.
#define CLAIM(busy) \
	IMUL3Q $const_laneStride, CX, R12; \
	ADDQ  SI, R12; \
	MOVQ  Cache_lanes(DI), BX; \
	LEAQ  (BX)(R12*8), BX; \
	TESTL $(const_laneBusy+const_laneFull), (BX); \
	JNE   busy; \
	LOCK; \
	BTSQ  $0, (BX); \
	JCS   busy

// ENTER takes lane CX, which is at BX then, or goes to busy with nothing taken, or
// to shut with the lane taken. It uses AX and R12. (lane.enter)
#define ENTER(busy, shut) \
	CLAIM(busy); \
	MOVQ  (bucket_mu+bucketLock_open)(R8), AX; \
	BTQ   CX, AX; \
	JCC   shut

// TAG sets R10 to the tag of the hash. (tagOf)
#define TAG \
	MOVQ  DX, R10; \
	SHRQ  $33, R10; \
	ORL   $const_tagUsed, R10; \
	MOVBLZX R10, R10

// TAGS sets R11 to a word with a bit for each slot of group R9 that has the tag in R10, and the zero flag if
// none has. It sets the bytes of X1 to the tag, and uses AX, R10 and X0. (group.matches)
#define TAGS \
	MOVQ  $const_tagOnes, AX; \
	IMULQ AX, R10; \
	MOVQ  R10, X1; \
	MOVQ  (R9), X0; \
	PCMPEQB X1, X0; \
	PMOVMSKB X0, R11; \
	ANDL  $(1<<const_groupSlots-1), R11

// BEGIN notes that what follows may be overtaken by somebody who writes, or goes to busy if somebody does. It uses
// X8 and R14 up to SURE.
#define BEGIN(busy) \
	MOVQ  (bucket_mu+bucketLock_seq)(R8), R14; \
	TESTL $1, R14; \
	JNE   busy; \
	MOVQ  R8, X8

// STILL goes to overtaken if somebody has written since BEGIN, with the bucket in R8. What has been read up to here is
// of one time then: nothing is to be followed that has been read of the bucket, and not yet been sure of.
#define STILL(overtaken) \
	CMPQ  R14, (bucket_mu+bucketLock_seq)(R8); \
	JNE   overtaken

// SURE goes to overtaken if somebody has written since BEGIN. It uses AX.
#define SURE(overtaken) \
	MOVQ  X8, AX; \
	CMPQ  R14, (bucket_mu+bucketLock_seq)(AX); \
	JNE   overtaken

// TOUCH raises the frequency in slot R10, which is at R12, if it counts and the slot is still the same. It uses AX and CX.
// Somebody may write meanwhile: that is what the comparison is for.
#define TOUCH \
	MOVQ  $const_slotFreqMask, CX; \
	MOVQ  R10, AX; \
	ANDQ  CX, AX; \
	CMPQ  AX, CX; \
	JEQ   touched; \
	CMPB  Cache_touches(DI), $0; \
	JEQ   touched; \
	MOVQ  $const_slotFreqOne, CX; \
	MOVQ  R10, AX; \
	ADDQ  R10, CX; \
	LOCK; \
	CMPXCHGQ CX, (R12); \
touched:

// UNTOUCH takes back what TOUCH has done, where somebody else is going to do it. It uses AX.
#define UNTOUCH \
	MOVQ  $const_slotFreqOne, AX; \
	ADDQ  R10, AX; \
	LOCK; \
	CMPXCHGQ R10, (R12)

// MATCH sets R11 to a word with a bit for each slot of the group that has the hash's
// tag, and the zero flag if none has, or goes to back if that is the tag of the Set that was put
// aside. It sets the bytes of X1 to the tag, and uses AX, R10 and X0. (group.matches)
#define MATCH \
	TAG; \
	CMPB  R10, bucket_asideTag(R8); \
	JEQ   back; \
	TAGS

// PASSED goes to none if no entry with the hash's side has passed group R9. It uses AX: 0x0f for side
// 0, 0xf0 for side 1. (group.passed)
#define PASSED(none) \
	BTQ   $const_slotHashAt, DX; \
	SBBL  AX, AX; \
	XORL  $0x0f, AX; \
	TESTB AX, (group_ctrl+7)(R9); \
	JEQ   none

// RING sets SI to the ring of the slot, of which the bit above the position says which it is. A ring
// has 1<<ringShift bytes.
#define RING \
	MOVQ  R10, SI; \
	SHRQ  $(const_slotPosBits-const_ringShift), SI; \
	ANDL  $(1<<const_ringShift), SI; \
	LEAQ  bucket_rings(R8)(SI*1), SI

// SLOT takes the first of the matches, or goes to next if it is not of a live record
// with such a hash. It sets R10 to the slot, R12 to where it is, and SI to the record's
// ring, and uses CX. Old processors take TZCNT for BSF, which says the same of what is
// not 0, but in more steps. (bucket.likely)
#define SLOT(next) \
	TZCNTL R11, CX; \
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
	CIRCLE; \
	MOVQ  (R13)(R11*8), R11; \
	OFFSET

// SOUGHT is RECORD where somebody may write at the same time: it goes to none if somebody has since BEGIN. Else the circle
// of slots is the one that it is taken for, and goes on to be there; but the slot may have lost its chunk by now.
#define SOUGHT(none) \
	CIRCLE; \
	STILL(none); \
	MOVQ  (R13)(R11*8), R11; \
	TESTQ R11, R11; \
	JEQ   none; \
	OFFSET

// CIRCLE sets R13 to the slots of the record's ring, R11 to which of them has its chunk, and CX to what OFFSET wants.
#define CIRCLE \
	MOVBLZX ring_shift(SI), CX; \
	MOVQ  R10, R11; \
	SHRQ  CX, R11; \
	MOVQ  (ring_slots+8)(SI), R13; \
	DECQ  R13; \
	ANDQ  R13, R11; \
	MOVQ  ring_slots(SI), R13

// OFFSET sets CX to the offset in the chunk, and R13 to the bytes from there to its end.
#define OFFSET \
	MOVL  $1, R13; \
	SHLL  CX, R13; \
	LEAL  -1(R13), CX; \
	ANDL  R10, CX; \
	SUBL  CX, R13

// SAME goes to other unless the record at R11, with R13 bytes to the end of its chunk, is a
// short one without an expiry and has the key at SI, of R9 bytes. It sets R11 to its value and
// CX to the value's length. It uses AX and R13. (ring.shortValue)
#define SAME(other) \
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

// LIKELY takes the length in CX from DX, if it is the same. The processor guesses that branch, and so
// knows where the value's end is going to be stored before the record has come. A store of which that
// is not known no later load passes: the next lookups would wait.
#define LIKELY \
	CMPQ  CX, DX; \
	JNE   unlike; \
	MOVQ  DX, CX; \
unlike:

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

// RAISE raises the frequency in slot R10, which is at R12, for a later store of R10 to R12. Where
// it is as high as can be, one more overflows into the hash; R12 is the argument c then. It sets
// AX to that, and uses CX. (slotRef.touch, storeUnless)
#define RAISE \
	MOVQ  R10, CX; \
	MOVQ  $const_slotFreqOne, AX; \
	ADDQ  AX, R10; \
	XORQ  R10, CX; \
	LEAQ  c+0(FP), AX; \
	BTQ   $const_slotHashAt, CX; \
	CMOVQCS AX, R12

// TABLE sets R11 to the home of the hash, and R13 to the groups of its table. It uses AX, R10, R12
// and SI. (index.table)
#define TABLE \
	MOVL (bucket_index+index_front)(R8), R10; \
	MOVL (bucket_index+index_cur+table_groups)(R8), R11; \
	MOVL (bucket_index+index_old+table_groups)(R8), R12; \
	MOVL R11, R13; \
	MOVL R12, SI; \
	HOME; \
	CMOVLCS SI, R13

// PATH sets SI to the home of the hash, R13 to the groups of its table, BX to how many groups
// of the path are behind the home, and R10 to the step to the first of them. It uses AX, R11
// and R12. (index.path)
#define PATH \
	TABLE; \
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
