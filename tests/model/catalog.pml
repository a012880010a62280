/* The writers of the catalog and of a migration's record: workers that pause for any time, and operators who begin a
 * migration, begin another one when it has ended, alter the dataset, and drop it. Of the two sides the model knows only
 * which one serves; that is changed under the epoch, as in cutover.pml.
 *
 * Mutants:
 *   ENTRY_UNFENCED   the dataset's entry is changed without checking the record
 *   REMOVE_UNFENCED  the record is removed whatever its version
 *   DROP_UNSEEN      a dataset is dropped although it has a migration that has not started
 *   ALTER_UNSEEN     settings are altered after a worker has read them for both sides
 *
 * The rules of the protocol: entry and record are changed in one transaction, which names the record's version; drop and
 * alter check in such a transaction that there is no record, and are refused if there is one.
 */
#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef EPOCHS
#define EPOCHS 4
#endif
#ifndef MIGRATIONS
#define MIGRATIONS 2
#endif

#define CREATED 0
#define RESTING 1
#define CUTTING 2
#define FINISHING 3

/* The dataset's entry in the catalog. */
bool exists;
byte incarnation;
bool backend;      /* the side that clients use */
bool other;        /* the dataset migrates */
byte settings;

/* The migration's record. */
bool record;
byte record_number, record_phase, record_epoch;
byte record_of;    /* the dataset's incarnation */
bool record_on;    /* the side that is the truth */

byte serves;       /* the side that serves */
byte side_epoch;   /* the epoch of both sides */
byte copied;       /* the settings with which the worker opened the sides */
byte epochs, migrations;

proctype Checks() {
end:
  do
  :: atomic {
       exists ->
       assert(! other || record);
       assert(! record || record_of == incarnation);
       assert(! record || record_phase != RESTING || (backend == serves && other && copied == settings));
       assert(record || backend == serves)
     }
  :: atomic { ! exists -> assert(! record) }
  od
}

#define FENCE (record && record_epoch == by)

/* A worker whose change is refused ends, and may take over again. */
proctype Worker() {
  byte by, phase, number;
  bool to;
end:
takeover:
  atomic {
    by = 0; phase = 0; number = 0; to = 0;
    epochs < EPOCHS && record ->
    epochs++; by = epochs; record_epoch = by; phase = record_phase; number = record_number
  }
  atomic {
    if
    :: side_epoch < by -> side_epoch = by
    :: else -> goto takeover
    fi
  }
  if
  :: phase == CREATED ->
     /* The worker reads the settings, writes into the entry that the dataset migrates, and makes the sides. */
#ifdef ALTER_UNSEEN
     copied = settings;
     atomic {
       if
       :: ! FENCE -> goto takeover
       :: else -> other = true
       fi
     }
#else
     atomic {
       if
       :: ! FENCE -> goto takeover
       :: else -> other = true; copied = settings
       fi
     }
#endif
     atomic {
       if
       :: ! FENCE -> goto takeover
       :: else -> record_phase = RESTING; phase = RESTING
       fi
     }
  :: else
  fi;
  do
  :: phase == RESTING ->
     atomic {
       if
       :: ! FENCE -> goto takeover
       :: FENCE -> record_phase = CUTTING; phase = CUTTING
       :: FENCE -> record_phase = FINISHING; phase = FINISHING
       :: FENCE -> goto takeover
       fi
     }
  :: phase == CUTTING ->
     atomic {
       if
       :: side_epoch != by -> goto takeover
       :: else -> to = ! record_on; serves = to
       fi
     }
     atomic {
       if
#ifdef ENTRY_UNFENCED
       :: true -> backend = to; other = true
#else
       :: ! FENCE -> goto takeover
       :: else -> backend = to; other = true
#endif
       fi
     }
     atomic {
       if
       :: ! FENCE -> goto takeover
       :: else -> record_on = to; record_phase = RESTING; phase = RESTING
       fi
     }
  :: phase == FINISHING ->
     atomic {
       if
#ifdef ENTRY_UNFENCED
       :: true -> other = false
#else
       :: ! FENCE -> goto takeover
       :: else -> other = false
#endif
       fi
     }
     atomic {
       if
#ifdef REMOVE_UNFENCED
       :: record ->
#else
       :: FENCE ->
#endif
          assert(record_number == number);
          record = false; record_phase = 0; record_on = 0; record_number = 0; record_of = 0
       :: else
       fi
     }
     goto takeover
  od
}

proctype Operator() {
end:
  do
  :: atomic {
       exists && ! record && ! other && migrations < MIGRATIONS ->
       migrations++;
       record = true; record_number = migrations; record_phase = CREATED; record_on = backend; record_of = incarnation
     }
  :: atomic {
#ifdef DROP_UNSEEN
       exists && ! other && incarnation < 2 ->
#else
       exists && ! other && ! record && incarnation < 2 ->
#endif
       exists = false
     }
  :: atomic { ! exists -> exists = true; incarnation++; backend = 0; serves = 0 }
  :: atomic {
#ifdef ALTER_UNSEEN
       exists && ! other && settings < 1 ->
#else
       exists && ! other && ! record && settings < 1 ->
#endif
       settings++
     }
  od
}

init {
  atomic {
    byte i;
    exists = true; incarnation = 1;
    for (i : 1 .. WORKERS) { run Worker() }
    i = 0;
    run Operator(); run Checks()
  }
}
