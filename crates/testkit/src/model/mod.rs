//! A model server that plays a scenario, so that tests can drive real agent clients without a model and without a network.
//!
//! One server listens on a free port of this machine and speaks three interfaces: Anthropic Messages, OpenAI Responses and
//! OpenAI Chat Completions. A [`Scenario`] is a list of rules: what a request must look like, and what the server answers. The
//! server keeps each request ([`ModelServer::request_log`]), so a test can assert on what the client really sent.
//!
//! - `scenario`: scenarios, built in code or read from YAML
//! - `request`: a request as rules see it, independent of its interface
//! - `model_answer`: an answer before it has the form of an interface
//! - `tool_calls`: abstract tool calls mapped onto the tools that a client offered
//! - `messages`, `responses`, `chat`: one interface each, with the same functions for requests and answers
//! - `server`, `http`: sockets, threads, gates, the request log
//! - `timestamps`: timestamps in error texts, relative to when they are sent
//! - [`review_rules`]: rules for reviewers, challengers and fixers of a review
//! - `clients`: the environment that points a real client at a server
//!
//! The server deliberately has no TLS, no compression (no known client sends it), and no timed delays: instead of delays it has
//! gates that a test opens. A request that no rule matches is refused with 400 and listed as unscripted, never answered by
//! chance.

mod chat;
mod clients;
mod http;
mod messages;
mod model_answer;
mod request;
mod responses;
pub mod review_rules;
mod scenario;
mod server;
mod timestamps;
mod tool_calls;

pub use clients::{CODEX_MODEL, claude_env, codex_env};
pub use request::{ModelApi, ModelRequest};
pub use scenario::{
    AnswerFailure, AnswerStep, AnswerStop, RuleCondition, Scenario, ScenarioCall, ScenarioError, ScenarioRule,
    ScriptedTokens, TextPattern,
};
pub use server::{ModelServer, RequestLog};
