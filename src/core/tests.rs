//! The core as a whole: conversations told as events, and the promises that hold for every schedule of events.

mod conversations;
mod follow;
mod prompts;
mod schedules;
mod world;
