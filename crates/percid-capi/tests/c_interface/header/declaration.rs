//! Declarations of functions in the form of `percid.h`.

/// The beginning of each declaration.
const BEGIN: &str = "PERCID_INLINE";

/// The end of the declaration of a function that throws no exception.
const QUIET: &str = " PERCID_NOEXCEPT";

/// The attribute before a result that must not be ignored.
const MUST_USE: &str = "PERCID_MUST_USE";

/// Functions that call a function that was passed to another one.
const CALL_BACK: [&str; 2] = ["percid_local_acquire", "percid_local_destroy"];

/// A function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Declaration {
    /// The result type, followed by a space unless it is a pointer.
    result: String,
    pub(crate) name: String,
    /// The text between its parentheses.
    parameters: String,
    /// [`QUIET`] or nothing.
    promise: &'static str,
}

/// Adds to every declaration of a header that nothing is thrown. Functions with callbacks make no
/// such promise.
pub(crate) fn with_promises(header: &str) -> String {
    let mut lines = Vec::new();
    let mut calls_back = None;
    for line in header.lines() {
        if is_begin(line) {
            calls_back = Some(false);
        }
        let calls = |line: &str| CALL_BACK.iter().any(|name| line.contains(name));
        calls_back = calls_back.map(|before| before || line.contains("(*") || calls(line));
        let end = line.strip_suffix(");").filter(|_| calls_back.is_some());
        let promised = end.filter(|_| calls_back == Some(false));
        lines.push(promised.map_or(line.to_owned(), |line| format!("{line}){QUIET};")));
        calls_back = calls_back.filter(|_| end.is_none());
    }
    lines.join("\n") + "\n"
}

/// Returns all declarations of a header, in its order.
pub(crate) fn all(header: &str) -> Vec<Declaration> {
    let starts = header.match_indices(BEGIN).filter(|(at, _)| header[..*at].ends_with('\n'));
    let texts = starts.map(|(at, _)| &header[at + BEGIN.len()..]);
    texts.map(|text| parse(text.split_once(';').expect("an end").0)).collect()
}

fn is_begin(line: &str) -> bool {
    line.split(' ').next() == Some(BEGIN)
}

fn parse(text: &str) -> Declaration {
    let words = text.split_whitespace().filter(|&word| word != MUST_USE);
    let text = words.collect::<Vec<_>>().join(" ");
    let (text, promise) =
        text.strip_suffix(QUIET).map_or((text.as_str(), ""), |text| (text, QUIET));
    let (head, parameters) = text.split_once('(').expect("parameters");
    let parameters = parameters.strip_suffix(')').expect("the end of the parameters");
    let name = head.rfind("percid_").expect("a name of percid's");
    Declaration {
        result: head[..name].to_owned(),
        name: head[name..].to_owned(),
        parameters: parameters.to_owned(),
        promise,
    }
}

impl Declaration {
    /// Returns the name of its member of the table.
    fn short(&self) -> &str {
        self.name.strip_prefix("percid_").expect("a name of percid's")
    }

    /// Returns its member of the table.
    pub(crate) fn member(&self) -> String {
        format!("    {}(*{})({});", self.result, self.short(), self.parameters)
    }

    /// Returns the definition of the function that calls through the table.
    pub(crate) fn definition(&self) -> String {
        let call = format!("percid_interface_address()->{}({})", self.short(), self.arguments());
        let statement = if self.result == "void " { call } else { format!("return {call}") };
        format!("{}{{\n    {statement};\n}}\n", self.head())
    }

    /// Returns the definition that calls through a table that may be too old for the function.
    pub(crate) fn careful_definition(&self) -> String {
        let (name, short, arguments) = (&self.name, self.short(), self.arguments());
        let missing = format!("table->missing(\"{name}\")");
        let (call, otherwise) = match self.result.as_str() {
            "void " => ("", format!("{missing};\n        return;")),
            "int " | "int64_t " => ("return ", format!("return {missing};")),
            _ => ("return ", format!("{missing};\n        return 0;")),
        };
        format!(
            "{head}{{
    const struct percid_interface *const table = percid_interface_address();
    if (__builtin_expect(!table->{short}, 0)) {{
        {otherwise}
    }}
    {call}table->{short}({arguments});
}}
",
            head = self.head()
        )
    }

    fn head(&self) -> String {
        format!("{BEGIN} {}{}({}){}\n", self.result, self.name, self.parameters, self.promise)
    }

    /// Returns the names of its parameters.
    fn arguments(&self) -> String {
        let mut depth = 0;
        let at_top = |c: char| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            c == ',' && depth == 0
        };
        let names = self.parameters.split(at_top).map(|one| name_of(one.trim()));
        names.collect::<Vec<_>>().join(", ")
    }
}

/// Returns the name of a parameter; empty for `void`.
fn name_of(parameter: &str) -> &str {
    let end = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    let name = match parameter.split_once("(*") {
        Some((_, callback)) => callback.split(end).next(),
        None => parameter.rsplit(end).next().filter(|_| parameter != "void"),
    };
    name.unwrap_or_default()
}
