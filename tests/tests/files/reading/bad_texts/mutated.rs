//! Whatever is cut from a text or changed in it, nothing panics.

use hlorank_tests::prelude::*;
use proptest::{prelude::*, sample::Index};

use super::{PARAMETER, read_within, text};

fn real_text(name: &str) -> String {
    fs::read_to_string(fixture(HLO_FIXTURES).join(format!("{name}.hlo.txt"))).unwrap()
}

/// Processes untrusted text as a server does.
fn use_text(text: &str) {
    let module = match HloModule::read_text(text, &Limits::default()) {
        Ok(module) => module,
        Err(GraphError::Text { line, column, .. }) => {
            let found = text.split('\n').nth(line - 1).expect("the line is there");
            assert!(
                (1..=found.chars().count() + 1).contains(&column),
                "line {line}, column {column}"
            );
            return;
        }
        Err(_) => return,
    };
    use_module(module);
}

#[test]
fn a_text_cut_short_is_refused_or_is_a_smaller_module() {
    let text = real_text("mlp_train.before_opt");
    let whole = read_within(&text, &Limits::default()).unwrap();
    let mut smaller = 0;
    for cut in 0..text.len() {
        use_text(&text[..cut]);
        smaller += usize::from(
            read_within(&text[..cut], &Limits::default()).is_ok_and(|nodes| nodes < whole),
        );
    }
    assert!(smaller > 3);
}

/// Mutation of a text.
#[derive(Clone, Debug)]
enum Mutation {
    Overwrite(Index, char),
    Insert(Index, String),
    Remove(Index, usize),
    Repeat(Index, usize, usize),
    /// Inserts a piece of another text.
    Splice(Index, Index, usize),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let piece = prop_oneof![
        Just("{"),
        Just("}"),
        Just("("),
        Just(")"),
        Just("["),
        Just("]"),
        Just("\""),
        Just("/*"),
        Just("//"),
        Just("%"),
        Just(","),
        Just("="),
        Just("->"),
        Just("ROOT "),
        Just("ENTRY "),
        Just("é"),
        Just("\0"),
        Just("99999999999999999999"),
        Just("-9223372036854775808"),
        Just("?"),
        Just("<="),
        Just("-start("),
        Just("-update("),
        Just("-done("),
        Just("#0"),
        Just("#1"),
        Just("tuple("),
        Just("get-tuple-element("),
        Just(", dimensions={0}"),
        Just(", to_apply={"),
        Just(", window={size="),
        Just(", slice={["),
    ];
    let pieces = (piece, 1..200_usize).prop_map(|(piece, count)| piece.repeat(count));
    let at = any::<Index>;
    prop_oneof![
        (at(), any::<char>()).prop_map(|(at, character)| Mutation::Overwrite(at, character)),
        (at(), prop::char::range(' ', '~'))
            .prop_map(|(at, character)| Mutation::Overwrite(at, character)),
        (at(), pieces).prop_map(|(at, piece)| Mutation::Insert(at, piece)),
        (at(), 1..400_usize).prop_map(|(at, length)| Mutation::Remove(at, length)),
        (at(), 1..400_usize, 1..20_usize)
            .prop_map(|(at, length, times)| Mutation::Repeat(at, length, times)),
        (at(), at(), 1..2000_usize)
            .prop_map(|(at, from, length)| Mutation::Splice(at, from, length)),
    ]
}

fn mutate(text: &mut Vec<char>, mutation: &Mutation, other: &[char]) {
    if text.is_empty() {
        return;
    }
    let end = |from: usize, length: usize, text: &[char]| (from + length).min(text.len());
    match mutation {
        Mutation::Overwrite(at, character) => {
            let at = at.index(text.len());
            text[at] = *character;
        }
        Mutation::Insert(at, piece) => {
            let at = at.index(text.len());
            text.splice(at..at, piece.chars());
        }
        Mutation::Remove(at, length) => {
            let at = at.index(text.len());
            text.drain(at..end(at, *length, text));
        }
        Mutation::Repeat(at, length, times) => {
            let at = at.index(text.len());
            let piece = text[at..end(at, *length, text)].repeat(*times);
            text.splice(at..at, piece);
        }
        Mutation::Splice(at, from, length) => {
            let (at, from) = (at.index(text.len()), from.index(other.len()));
            text.splice(
                at..end(at, *length, text),
                other[from..end(from, *length, other)].to_vec(),
            );
        }
    }
}

/// Texts that are small enough for thousands of cases.
const MUTATED: [&str; 4] = [
    "scalar_identity.cpu_after_opt",
    "mlp_train.before_opt",
    "cnn_train.before_opt",
    "control_flow_mix.cpu_after_opt",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn mutated_texts_never_panic(
        names in (prop::sample::select(&MUTATED[..]), prop::sample::select(&MUTATED[..])),
        mutations in prop::collection::vec(mutation(), 1..6),
    ) {
        let mut text: Vec<char> = real_text(names.0).chars().collect();
        let other: Vec<char> = real_text(names.1).chars().collect();
        for mutation in &mutations {
            mutate(&mut text, mutation, &other);
        }
        use_text(&text.into_iter().collect::<String>());
    }

    #[test]
    fn mutated_forms_never_panic(mutations in prop::collection::vec(mutation(), 1..4)) {
        let forms = fs::read_to_string(fixture("hlo_text/forms.hlo.txt")).unwrap();
        let other: Vec<char> = forms.chars().collect();
        let mut text = other.clone();
        for mutation in &mutations {
            mutate(&mut text, mutation, &other);
        }
        use_text(&text.into_iter().collect::<String>());
    }

    #[test]
    fn arbitrary_text_never_panics(rest in "\\PC{0,200}") {
        use_text(&rest);
        use_text(&format!("HloModule m {rest}"));
        use_text(&text(&[PARAMETER, &format!("%n = {rest}")]));
    }
}
