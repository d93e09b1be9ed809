//! The core as a whole: conversations told as events, and the promises that hold for every schedule of events.

mod commands;
mod follow;
mod prompts;
mod reopening;
mod requests;
mod schedules;
mod sessions;
mod turns;
mod world;
