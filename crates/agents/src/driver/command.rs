//! Drives any command line: the prompt goes to its standard input, and its standard output is the answer.

use std::ffi::OsString;

use super::{
    order::{Launch, Order},
    output::{Decoded, Finished},
};

pub(super) fn launch(argv: &[String], order: Order<'_>) -> Launch {
    let mut words = argv.iter().map(OsString::from);
    let program = words.next().unwrap_or_default();
    Launch { program, args: words.collect(), input: order.prompt, ..Launch::default() }
}

pub(super) fn decode(finished: &Finished<'_>) -> Decoded {
    // There is no other sign of work: a command that printed anything has at least begun to answer.
    let active = !finished.stdout.is_empty();
    Decoded { text: finished.stdout.to_string(), active, ..Decoded::default() }
}
