//! The core as a whole: conversations told as events, and the promises that hold for every schedule of events.

mod conversations;
mod schedules;
mod world;
