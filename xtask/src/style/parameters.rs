//! Finds parameters that are tuples: values that belong together and have no names.
//!
//! It counts every parameter of a function (free, in an `impl` or in a `trait`) whose pattern or type is a tuple of two parts or
//! more, also behind references. A tuple inside another type (`Vec<(u32, u32)>`) and the parameters of closures are not counted.

use syn::visit::{self, Visit};
use syn::{FnArg, Pat, Signature, Type};

use super::Place;
use super::tokens::each_production_token;
use crate::tokens::{is_word, line};
use crate::tree::Source;

pub fn find_tuple_parameters(source: &Source) -> Vec<Place> {
    let mut finder = Finder { path: &source.path, places: Vec::new() };
    finder.visit_file(&source.syntax);
    // The visitor sees tests, too; the tokens tell which functions are production code.
    let mut functions = Vec::new();
    each_production_token(&source.tokens, &mut |rest| {
        if let [word, name, ..] = rest
            && is_word(word, "fn")
        {
            functions.push(line(name));
        }
    });
    finder.places.retain(|place| functions.contains(&place.line));
    finder.places
}

struct Finder<'a> {
    path: &'a str,
    places: Vec<Place>,
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_signature(&mut self, signature: &'ast Signature) {
        for input in &signature.inputs {
            if let FnArg::Typed(parameter) = input
                && (is_tuple_pattern(&parameter.pat) || is_tuple_type(&parameter.ty))
            {
                self.places.push(Place {
                    path: self.path.to_owned(),
                    line: signature.ident.span().start().line,
                    name: signature.ident.to_string(),
                });
            }
        }
        // A default value or a nested item may contain further signatures.
        visit::visit_signature(self, signature);
    }
}

fn is_tuple_pattern(pattern: &Pat) -> bool {
    match pattern {
        Pat::Tuple(tuple) => tuple.elems.len() > 1,
        Pat::Reference(reference) => is_tuple_pattern(&reference.pat),
        _ => false,
    }
}

fn is_tuple_type(ty: &Type) -> bool {
    match ty {
        Type::Tuple(tuple) => tuple.elems.len() > 1,
        Type::Reference(reference) => is_tuple_type(&reference.elem),
        Type::Paren(paren) => is_tuple_type(&paren.elem),
        _ => false,
    }
}
