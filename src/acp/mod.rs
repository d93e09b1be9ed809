//! The agent's side: the Agent Client Protocol, version 1, over a child's stdin and stdout.
//!
//! * [`lines`]: bytes to lines of bounded length;
//! * [`envelope`]: a line to a JSON-RPC message whose parts are still raw JSON;
//! * [`decode`]: parts to the core's own types, taking what can be understood and keeping the rest;
//! * `elicitation`: the same for what an agent asks the user;
//! * [`encode`]: the core's types to lines;
//! * [`protocol`]: the pure state between the two: which of our calls an answer belongs to;
//! * [`alike`]: the short way for chunks that differ from the one before in their text only;
//! * [`output`] and [`pace`]: an agent's output, and how long to let it pile up;
//! * [`batch`]: what one read brought, for the core;
//! * [`connection`]: the process and the tasks around it.
//!
//! Only this module knows the wire and the crate with the protocol's types.

mod alike;
pub mod batch;
mod choices;
pub mod connection;
pub mod decode;
mod elicitation;
pub mod encode;
pub mod envelope;
pub mod lines;
mod output;
mod pace;
pub mod protocol;
mod surrogates;
mod tool_calls;
