//go:build amd64 && !purego && !ringcache_heap && !race && !asan && !msan

#include "funcdata.h"
#include "go_asm.h"
#include "textflag.h"
#include "glance_amd64.h"

// A quest is a key of a batch that getKeys looks for.
#define quest_hash 0
#define quest_lane 8 // where its lane is, which is taken; one more if it is taken for an earlier key
#define quest_record 16 // where its record is likely to be
#define quest_slot 24 // of the record
#define quest_at 32 // where the slot is
#define quest_left 40 // bytes from the record to the end of its chunk
#define quest_state 44
#define quest__size 48

// What is known of a quest.
#define UNSURE 0
#define FOUND 1 // where its record is likely to be
#define MISS 2 // the key is not in its small bucket

// func getKeys(c *Cache, dst []byte, keys [][]byte, hashes *uint64, lens *int, lane uint, quests *quest) (n, entered, end int)
TEXT ·getKeys(SB), NOSPLIT, $40-112
	NO_LOCAL_POINTERS
	MOVQ c+0(FP), DI
	MOVQ hashes+56(FP), R13
	MOVQ quests+80(FP), R9
	MOVQ keys_base+32(FP), R10
	MOVQ keys_len+40(FP), R11
	MOVQ $0, entered+96(FP)

	// First, take the lanes of as many keys as can be: R10 is where the key is, R11 how many
	// there are from it on, R13 where its hash is, and R9 its quest.
enter:
	TESTQ R11, R11
	JEQ  entered
	CMPQ 8(R10), $const_maxShortKey
	JHI  entered
	MOVQ (R13), DX
	MOVQ DX, quest_hash(R9)
	BUCKET
	OPEN(lane+72(FP))
	ENTER(busy, shut)

ours:
	MOVQ BX, quest_lane(R9)
	ADDQ $quest__size, R9
	INCQ entered+96(FP)
	ADDQ $24, R10
	ADDQ $8, R13
	DECQ R11
	JMP  enter

busy:
	// It may be us, for an earlier key in the same bucket: then that key leaves the lane.
	MOVQ hashes+56(FP), R12

earlier:
	CMPQ R12, R13
	JEQ  entered
	MOVQ (R12), AX
	ADDQ $8, R12
	XORQ DX, AX
	TESTQ AX, Cache_mask(DI)
	JNE  earlier
	INCQ BX
	JMP  ours

shut:
	SUBQ $const_laneBusy, (BX)

closed:
entered:
	MOVQ R9, last-8(SP)
	MOVQ quests+80(FP), BX
	MOVQ keys_base+32(FP), DX
	CMPQ BX, R9
	JEQ  done

	// Then look for their slots, and ask for their records: BX is the quest.
find:
	MOVQ quest_hash(BX), DX
	BUCKET
	MOVL $UNSURE, quest_state(BX)
	CMPQ (bucket_index+index_pages+8)(R8), $0
	JEQ  back
	LOCKED
	MATCH
	JEQ  absent

match:
	SLOT(next)

found:
	MOVQ R10, quest_slot(BX)
	MOVQ R12, quest_at(BX)
	RECORD
	ADDQ CX, R11
	MOVQ R11, quest_record(BX)
	MOVL R13, quest_left(BX)
	MOVL $FOUND, quest_state(BX)
	// Ask for the first line, the last and what is between, with no branch that depends on a
	// record's place.
	MOVBLZX ring_last(SI), CX
	LEAQ (R11)(CX*1), AX
	LEAQ 64(R11), R12
	CMPQ R12, AX
	CMOVQHI AX, R12
	PREFETCHT0 (R11)
	PREFETCHT0 (R12)
	PREFETCHT0 (AX)
	CMPL CX, $128
	JCS  back
	PREFETCHT0 128(R11)

back:
	ADDQ $quest__size, BX
	CMPQ BX, last-8(SP)
	JNE  find

	// Then copy their values, up to the first key that has to be looked for in other ways:
	// DX is where the key is.
	MOVQ quests+80(FP), BX
	MOVQ keys_base+32(FP), DX
	MOVQ dst_len+16(FP), AX
	ADDQ $const_batchBytes, AX
	MOVQ AX, most-16(SP)

get:
	MOVL quest_state(BX), AX
	CMPL AX, $FOUND
	JNE  missed
	MOVQ quest_record(BX), R11
	MOVL quest_left(BX), R13
	MOVQ quest_slot(BX), R10
	MOVQ quest_at(BX), R12
	MOVQ (DX), SI
	MOVQ 8(DX), R9
	SAME(done)
	MOVQ dst_cap+24(FP), AX
	MOVQ dst_len+16(FP), R13
	SUBQ R13, AX
	CMPQ CX, AX
	JGT  done
	CMPQ R13, most-16(SP)
	JGT  done
	MOVQ dst_base+8(FP), SI
	ADDQ R13, SI
	ADDQ CX, dst_len+16(FP)
	MOVQ lens+64(FP), AX
	MOVQ CX, (AX)
	ADDQ $8, AX
	MOVQ AX, lens+64(FP)
	MOVQ quest_lane(BX), AX
	ANDQ $~1, AX
	ADDQ $const_laneOnce, (AX)
	COPY
	CMPB Cache_touches(DI), $0
	JEQ  got
	RAISE
	MOVQ R10, (R12)

got:
	ADDQ $24, DX
	ADDQ $quest__size, BX
	CMPQ BX, last-8(SP)
	JNE  get

done:
	// And leave all lanes, but for those that are left for an earlier key.
	MOVQ dst_len+16(FP), AX
	MOVQ AX, end+104(FP)
	SUBQ keys_base+32(FP), DX
	MOVQ DX, AX
	XORL DX, DX
	MOVL $24, CX
	DIVL CX
	MOVQ AX, n+88(FP)
	MOVQ quests+80(FP), BX

leave:
	CMPQ BX, last-8(SP)
	JEQ  left
	MOVQ quest_lane(BX), AX
	ADDQ $quest__size, BX
	TESTB $1, AX
	JNE  leave
	SUBQ $const_laneBusy, (AX)
	JMP  leave

left:
	RET

missed:
	CMPL AX, $MISS
	JNE  done
	MOVQ quest_hash(BX), CX
	ANDL $(const_bucketCount-1), CX
	MOVQ Cache_shared(DI), AX
	CMPL commons_stray(AX)(CX*4), $0
	JNE  done
	MOVQ lens+64(FP), AX
	MOVQ $const_glanceMiss, (AX)
	ADDQ $8, AX
	MOVQ AX, lens+64(FP)
	MOVQ quest_lane(BX), AX
	ANDQ $~1, AX
	MOVQ $(const_laneMiss+const_laneOnce), CX
	ADDQ CX, (AX)
	JMP  got

	KEYS(done)
	COPIES

next:
	LEAL -1(R11), CX
	ANDL CX, R11
	JNE  match

absent:
	PASSED(none)

	// Something has passed the home group: on along the path, with BX put by. What the quest
	// waits for here, others do not: the processor goes on with them.
	MOVQ BX, quest-24(SP)
	PATH
	JMP  on

group:
	AT
	MOVQ (R9), X0
	PCMPEQB X1, X0
	PMOVMSKB X0, R11
	ANDL $(1<<const_groupSlots-1), R11
	JNE  likely

passed:
	PASSED(end)

on:
	NEXT(end)

likely:
	MOVQ SI, home-32(SP)
	MOVQ R10, step-40(SP)
	SLOT(unlike)
	MOVQ quest-24(SP), BX
	JMP  found

unlike:
	MOVQ home-32(SP), SI
	MOVQ step-40(SP), R10
	LEAL -1(R11), CX
	ANDL CX, R11
	JNE  likely
	JMP  passed

end:
	MOVQ quest-24(SP), BX

none:
	MOVL $MISS, quest_state(BX)
	JMP  back

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
	ASK

asked:
	ADDQ $24, BX
	DECQ keys_len+16(FP)
	JNE  key

done:
	MOVQ keys_len+16(FP), AX
	SUBQ AX, ret+40(FP)
	RET

	HASHES
	HINTS

// func noteRecords(c *Cache, hashes *uint64, records *[batchSize]lines, n int, lane uint) (unknown int)
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
	ENTER(closed, back)
	CMPQ (bucket_index+index_pages+8)(R8), $0
	JEQ  back
	LOCKED
	MATCH
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
