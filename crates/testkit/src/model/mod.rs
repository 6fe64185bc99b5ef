//! A model server that plays a scenario, so that real agent clients can be driven without a model and without a network.
//!
//! One server listens on a free port of this machine and speaks three interfaces: Anthropic Messages, OpenAI Responses and
//! OpenAI Chat Completions. A [`Scenario`] is a list of rules: what a request must look like, and what is answered. Each
//! request is kept ([`Server::tally`]), so a test asserts on what the client really sent.
//!
//! - `scenario`: what people write, in code or as YAML
//! - `request`: a request as rules see it, whatever its interface
//! - `calls`: abstract tool calls mapped onto the tools a client offered
//! - `messages`, `responses`, `chat`: one interface each, request to words and answer to wire, always the same shape
//! - `server`, `http`: sockets, threads, gates, tallies
//! - `moments`: times in what an error says, as of when it is said
//! - [`parts`]: rules for reviewers, challengers and fixers of a review
//! - `clients`: the environment that points a real client at a server
//!
//! What it deliberately does not do: no TLS, no compression (no client we know sends it), no delays by the clock: they are
//! gates that a test opens. A request that no rule fits is refused with 400 and listed as unscripted, never answered by chance.

mod answer;
mod calls;
mod chat;
mod clients;
mod http;
mod messages;
mod moments;
pub mod parts;
mod request;
mod responses;
mod scenario;
mod server;

pub use clients::{CODEX_MODEL, claude_env, codex_home};
pub use request::{Api, Request};
pub use scenario::{Call, Failure, Pattern, Rule, Scenario, ScenarioError, Step, Stop, Tokens, When};
pub use server::{Server, Tally};
