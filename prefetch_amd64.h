// PREFETCHW asks for the line at AX, to be written to. The assembler does not know it.
#define PREFETCHW BYTE $0x0F; BYTE $0x0D; BYTE $0x08
