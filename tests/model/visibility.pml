/* A source whose log is on another engine than its rows: a commit becomes visible in the one before it does in the other.
 * The locks of the log's engine, which a freeze waits for, are released when its half is committed. There are one unit,
 * writers, and a worker that drains, freezes, drains until the log is empty, and lets the target serve.
 *
 * Mutants:
 *   LIST_THEN_READ      entries are listed, and then the unit is read, each as of a moment of its own
 *   SNAPSHOT_OF_BEFORE  the log is found empty in a snapshot that is older than the freeze
 *
 * The rules of the protocol: list and read use one snapshot, which is taken between commits and not during one; and the
 * snapshot in which the log is found empty is taken after the freeze.
 */
#ifndef WRITES
#define WRITES 2
#endif

bool frozen, opened;
byte locks;       /* how many writers have locked the state */
bool committing;  /* a commit is between its two halves */
byte source, target; /* the unit on each side: a bit for each write */
byte dirty;
byte acked;

proctype Writer(byte bits) {
  atomic {
    if
    :: frozen -> goto refused
    :: else -> locks++
    fi
  }
  atomic { ! committing -> committing = true; dirty = dirty | bits; locks-- };
  atomic { source = source | bits; committing = false };
  acked = acked | bits;
refused:
  skip
}

proctype Worker() {
  byte ids, content;
  bool last;
  do
  :: /* one drain */
#ifdef LIST_THEN_READ
     ids = dirty;
     content = source;
#else
     atomic { ! committing -> ids = dirty; content = source }
#endif
#ifdef SNAPSHOT_OF_BEFORE
     if
     :: ! frozen -> atomic { locks == 0 -> frozen = true }
     :: else
     fi;
#endif
     if
     :: ids != 0 ->
        target = content;
        dirty = dirty & ~ids
     :: else ->
        if
        :: frozen -> break
        :: else
        fi
     fi;
     if
     :: ! frozen -> atomic { locks == 0 -> frozen = true }
     :: true
     fi
  od;
  opened = true;
  assert((acked & ~target) == 0);
  /* No write is acknowledged later that the target lacks. */
  ! committing;
  assert((source & ~target) == 0)
}

init {
  atomic {
    byte i;
    for (i : 1 .. WRITES) { run Writer(1 << i) }
    i = 0;
    run Worker()
  }
}
