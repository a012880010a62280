/* A source whose log is in another engine than its rows (findings C3): at a commit the one becomes visible before the
 * other. The locks of the log's engine, which a freeze waits for, are let go when its half is committed. One unit, two
 * writers, and a worker that drains, freezes, drains to empty, and lets the target serve.
 *
 *   LIST_THEN_READ      entries are listed, and then the unit is read, each as of its own moment (C3)
 *   SNAPSHOT_OF_BEFORE  the log is found empty in a snapshot that is older than the freeze
 *
 * What is asked of the protocol: list and read are one snapshot, which is taken between commits and not in one; and the
 * one that finds the log empty is taken after the freeze.
 */
#ifndef WRITES
#define WRITES 2
#endif

bool frozen, opened;
byte locks;       /* that writers hold on the state */
bool committing;  /* a commit is between its two halves */
byte source, target; /* a bit for each write */
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
  /* Nor is anything acknowledged later that is not there. */
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
