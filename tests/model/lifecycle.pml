/* Create, drop and init of a dataset on two shards, by processes that pause for longer than their sessions last and then
 * continue. What a process whose session has ended left half done is taken over by any other. Init makes the missing
 * tables of the datasets that the catalog had when it began.
 *
 * Mutants:
 *   DROP_BY_NAME    a drop names the table only, and not the incarnation
 *   CREATE_ANEW     a create, or init, replaces a table of another incarnation without reading the catalog again
 *   REMOVE_ANY      the end of a drop removes whichever entry there is by then
 *   ACTIVATE_ANY    the end of a create overwrites whichever entry there is by then
 *   OWNER_UNSEEN    the end of a create checks the incarnation of the entry, but not its state and owner
 *
 * The rules of the protocol: each CREATE and DROP of a table names its incarnation, and is refused for a table of another
 * one; each write to the catalog names the incarnation, state and owner of the entry that it changes. A create that
 * meets a table of another incarnation checks that its entry is still its own, and drops that other incarnation by its
 * number: no incarnation comes back, so one that has left the catalog may be dropped at any time.
 */
#ifndef PROCESSES
#define PROCESSES 2
#endif
#ifndef INCARNATIONS
#define INCARNATIONS 2
#endif
#ifndef STEPS
#define STEPS 2
#endif

#define NONE 0
#define CREATING 1
#define ACTIVE 2
#define DROPPING 3

byte table[2];     /* the incarnation of each shard's table */
byte entry;        /* the incarnation in the catalog */
byte entry_state;
byte owner;
bool gone[PROCESSES + 2]; /* whether the session of each process has ended */
byte incarnations;

/* At any time, the tables of an active entry are there. */
proctype Client() {
end:
  do
  :: atomic { entry_state == ACTIVE -> assert(table[0] == entry && table[1] == entry) }
  od
}

inline drop_table(shard, number) {
  atomic {
    if
#ifdef DROP_BY_NAME
    :: true ->
#else
    :: table[shard] == number ->
#endif
       table[shard] = 0
    :: else
    fi
  }
}

inline end_drop() {
  drop_table(0, mine);
  drop_table(1, mine);
  atomic {
    if
#ifdef REMOVE_ANY
    :: entry != 0 ->
#else
    :: entry == mine && entry_state == DROPPING && owner == self ->
#endif
       assert(entry == mine);
       entry = 0; entry_state = NONE; owner = 0
    :: else
    fi
  }
}

/* Makes the table of a shard. Sets `failed` if the entry belongs to another process by now. */
inline create_table(shard) {
  do
  :: atomic {
       if
       :: table[shard] == 0 -> table[shard] = mine; break
       :: table[shard] == mine -> break
       :: else -> other = table[shard]
       fi
     }
#ifndef CREATE_ANEW
     if
     :: entry == mine && entry_state == CREATING && owner == self
     :: else -> failed = true; break
     fi;
#endif
     drop_table(shard, other)
  od;
  other = 0
}

proctype Process(byte self) {
  byte mine, other, left = STEPS;
  bool failed;
end:
  do
  :: left > 0 ->
     left--;
     if
     :: atomic { /* create, be it over a drop whose process is gone */
          incarnations < INCARNATIONS && (entry == 0 || (entry_state == DROPPING && gone[owner])) ->
          incarnations++;
          mine = incarnations; entry = mine; entry_state = CREATING; owner = self
        }
        create_table(0);
        if
        :: ! failed -> create_table(1)
        :: else
        fi;
        atomic {
          if
#ifdef ACTIVATE_ANY
          :: ! failed && entry != 0 ->
             assert(entry == mine);
#else
#ifdef OWNER_UNSEEN
          :: ! failed && entry == mine ->
#else
          :: ! failed && entry == mine && entry_state == CREATING && owner == self ->
#endif
#endif
             entry = mine; entry_state = ACTIVE; owner = 0
          :: else -> failed = true
          fi
        }
        if
        :: failed ->
           drop_table(0, mine);
           drop_table(1, mine)
        :: else
        fi
     :: atomic { entry_state == ACTIVE -> mine = entry; entry_state = DROPPING; owner = self }
        end_drop()
     :: atomic { /* take over what another process left */
          (entry_state == CREATING || entry_state == DROPPING) && gone[owner] ->
          mine = entry; entry_state = DROPPING; owner = self
        }
        end_drop()
     fi;
     mine = 0; failed = false
  :: left == 0 -> break
  od
}

proctype Init() {
  byte mine;
end:
  atomic { entry_state == ACTIVE -> mine = entry };
  atomic {
    if
#ifdef CREATE_ANEW
    :: table[1] != mine -> table[1] = mine
#else
    :: table[1] == 0 -> table[1] = mine
#endif
    :: else
    fi
  }
}

/* A process pauses, and the others see its session end. */
proctype Pause() {
end:
  if
  :: gone[1] = true
  :: gone[2] = true
  fi
}

init {
  atomic {
    byte i;
    entry = 1; entry_state = ACTIVE; table[0] = 1; table[1] = 1; incarnations = 1;
    for (i : 1 .. PROCESSES) { run Process(i) }
    i = 0;
    run Init(); run Pause(); run Client()
  }
}
