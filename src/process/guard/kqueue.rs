//! macOS and the BSDs: signals and the parent's end are read from a `kqueue(2)`. There is no subreaper.

use std::time::Instant;

use nix::sys::event::{EvFlags, EventFilter, FilterFlag, KEvent, Kqueue};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::time::TimeSpec;
use nix::unistd::{Pid, getppid};

use super::unix::Wake;

/// The signals and the parent of this process.
pub(super) struct Watch {
    queue: Kqueue,
}

impl Watch {
    /// Blocks the signals in the calling thread, which has to be the only one; the queue sees them nevertheless.
    pub(super) fn start() -> nix::Result<Self> {
        let signals = [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT, Signal::SIGCHLD];
        let mut mask = SigSet::empty();
        let mut changes = Vec::new();
        for signal in signals {
            mask.add(signal);
            changes.push(add(signal as usize, EventFilter::EVFILT_SIGNAL, FilterFlag::empty()));
        }
        mask.thread_block()?;
        let queue = Kqueue::new()?;
        queue.kevent(&changes, &mut [], None)?;

        let parent = getppid();
        let exit = add(usize::try_from(parent.as_raw()).unwrap_or(0), EventFilter::EVFILT_PROC, FilterFlag::NOTE_EXIT);
        // It fails when the parent is gone already, or may not be watched: then the helper sees the end of its input.
        if queue.kevent(&[exit], &mut [], None).is_err() && getppid() != parent {
            nix::sys::signal::raise(Signal::SIGTERM)?;
        }
        Ok(Self { queue })
    }

    /// Waits for one of the things that [`Wake`] lists; without a deadline for as long as it takes.
    pub(super) fn wait(&mut self, deadline: Option<Instant>) -> nix::Result<Wake> {
        let nothing = KEvent::new(0, EventFilter::EVFILT_USER, EvFlags::empty(), FilterFlag::empty(), 0, 0);
        loop {
            let timeout = deadline
                .map(|deadline| *TimeSpec::from_duration(deadline.saturating_duration_since(Instant::now())).as_ref());
            let mut events = [nothing];
            match self.queue.kevent(&[], &mut events, timeout) {
                Ok(0) => return Ok(Wake::Deadline),
                Ok(_) => {}
                Err(nix::errno::Errno::EINTR) => continue,
                Err(error) => return Err(error),
            }
            let is_child =
                events[0].filter() == Ok(EventFilter::EVFILT_SIGNAL) && events[0].ident() == Signal::SIGCHLD as usize;
            return Ok(if is_child { Wake::Child } else { Wake::End });
        }
    }
}

fn add(ident: usize, filter: EventFilter, what: FilterFlag) -> KEvent {
    KEvent::new(ident, filter, EvFlags::EV_ADD, what, 0, 0)
}

/// The system does not tell which orphans were whose, so this is only `helper`.
pub(super) fn children(helper: Option<Pid>) -> Vec<Pid> {
    helper.into_iter().collect()
}
