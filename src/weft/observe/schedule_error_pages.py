"""The pages of the errors of schedules: what happened, why, what to do."""

from __future__ import annotations

SCHEDULE_PAGES: dict[str, tuple[str, str, str]] = {
    "schedule.invalid": (
        "A schedule cannot be as it is described, for several reasons.",
        "Each finding has a code of its own, such as schedule.bad_cron or schedule.unknown_zone.",
        "Correct everything that the message lists. Nothing was written.",
    ),
    "schedule.bad_name": (
        "A schedule or the workflow that it starts has a name that cannot be used.",
        "The name of a schedule is part of the ids of its runs.",
        "Use 1 to 200 printable characters, no / or #.",
    ),
    "schedule.bad_input": (
        "The workflow does not take the input of the schedule.",
        "The input is checked before the schedule is stored, not when it fires.",
        "Correct the input. The message names what does not fit.",
    ),
    "schedule.bad_cron": (
        "The cron expression cannot be read.",
        "It has five fields: minute, hour, day of the month, month, day of the week.",
        "Write for example 0 9 * * MON-FRI for nine o'clock on working days.",
    ),
    "schedule.never_fires": (
        "The schedule has no time at which it would fire.",
        "The date does not exist, such as 30 February, or until is over before the first time.",
        "Correct the expression, or until. weft schedule next NAME shows the times of a schedule.",
    ),
    "schedule.unknown_zone": (
        "There is no time zone with this name.",
        "Names are those of the IANA database, with capital letters: Europe/Berlin, America/New_York, UTC.",
        "Correct the name.",
    ),
    "schedule.no_time": (
        "The schedule does not say when it fires.",
        "It needs either cron or every.",
        'Write cron="0 9 * * *" or every="15m".',
    ),
    "schedule.two_times": (
        "The schedule has both cron and every.",
        "Only one of them can say when it fires.",
        "Leave one of them out, or make two schedules.",
    ),
    "schedule.bad_duration": (
        "A duration of the schedule cannot be used.",
        "every is a number of whole seconds; catch_up and jitter are durations of zero or more.",
        'Write "15m", "1h30m" or seconds as a number. catch_up may also be "all".',
    ),
    "schedule.bad_dst": (
        "dst has a value that is not known.",
        "It says what happens at a local time that the change to summer time leaves out.",
        'Write "run" to start the run at the end of the gap, or "skip" to leave it out.',
    ),
    "schedule.bad_overlap": (
        "overlap has a value that is not known.",
        "It says what happens while a run of the schedule is open.",
        'Write "skip", "queue", "cancel_old" or "allow".',
    ),
    "schedule.bad_until": (
        "until is not a time.",
        "It is a date or a date with a time; without a zone it is in that of the schedule.",
        "Write 2026-12-31 or 2026-12-31T18:00+01:00.",
    ),
    "schedule.bad_priority": (
        "priority is not a whole number from -1000 to 1000.",
        "Of runs and steps that wait, those with a higher priority come first. Without one, it is 0.",
        "Write priority=10, or leave it out.",
    ),
    "schedule.bad_pause_after": (
        "pause_after is not a number of failures.",
        "The schedule is paused after so many runs in a row have failed.",
        "Write 1 or more, or leave it out.",
    ),
    "schedule.bad_jitter": (
        "The jitter is as long as the interval of the schedule, or longer.",
        "A run would start after the time of the next one.",
        "Choose a shorter jitter.",
    ),
    "schedule.bad_backfill": (
        "The period of a backfill cannot be used.",
        "It ends before it begins, or in the future, or has too many times.",
        "Choose a past period: weft schedule backfill NAME --from 2026-11-01 --to 2026-11-08",
    ),
    "schedule.overlap": (
        "A run was triggered while another run of the schedule is open.",
        "With overlap skip, a schedule has at most one open run. With queue, at most 100 wait.",
        "Wait for the open run, cancel it, or start the workflow itself: weft start WORKFLOW",
    ),
    "schedule.declared": (
        "A schedule that is declared in code was to be changed through the API or the command line.",
        "The next start of a host would change it back.",
        "Change the declaration in the code, or choose another name.",
    ),
}
