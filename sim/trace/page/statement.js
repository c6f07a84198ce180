// The C++ statement behind a step, parsed as far as lessons go: Eigen expressions of tiles, calls such as mask.apply.

const withoutComment = (line) => line.replace(/\/\/.*$/, "");

/** The statements that begin on a line, each up to its semicolon. */
function statementsAt(lines, line) {
  let text = "";
  for (let k = line - 1; k < lines.length && k < line + 7; ++k) {
    text += " " + withoutComment(lines[k]).trim();
    if (/[;{}]\s*$/.test(text)) break;
  }
  return text.split(";").map((s) => s.trim()).filter(Boolean);
}

/** Tokens of an expression: names with :: and template arguments such as lowest<Real>, numbers, punctuation. */
function tokens(text) {
  return text.match(
             /[A-Za-z_][\w:]*(?:<[A-Za-z]+>)?|\d[\w.]*|"[^"]*"|\+=|->|&&|\|\||[=!<>]=|[-+*/().,?:!<>{}[\]&=%]/g) ??
      [];
}

/**
 * A parser by precedence. Nodes have a kind: name { name }, number { value }, call { of, method, args },
 * member { of, method }, binary { op, a, b }, minus { a }, choice { test, a, b }.
 */
class Parser {
  constructor(text) {
    this.tokens = tokens(text);
    this.next = 0;
  }

  peek() { return this.tokens[this.next]; }

  take(token) {
    if (token !== undefined && this.peek() !== token) throw new Error(`${token} was expected before ${this.peek()}`);
    return this.tokens[this.next++];
  }

  expression() {
    const a = this.binary(0);
    if (this.peek() !== "?") return a;
    this.take();
    const b = this.expression();
    this.take(":");
    return { kind: "choice", test: a, a: b, b: this.expression() };
  }

  binary(level) {
    const levels = [["||"], ["&&"], ["==", "!="], ["<", ">", "<=", ">="], ["+", "-"], ["*", "/", "%"]];
    if (level === levels.length) return this.unary();
    let a = this.binary(level + 1);
    while (levels[level].includes(this.peek())) a = { kind: "binary", op: this.take(), a, b: this.binary(level + 1) };
    return a;
  }

  unary() {
    if (this.peek() === "-" || this.peek() === "!")
      return { kind: this.take() === "-" ? "minus" : "not", a: this.unary() };
    let node = this.primary();
    while (this.peek() === "." || this.peek() === "->") {
      this.take();
      const method = this.take();
      node = this.peek() === "(" ? { kind: "call", of: node, method, args: this.arguments() } :
                                   { kind: "member", of: node, method };
    }
    return node;
  }

  primary() {
    const token = this.take();
    if (token === "(") {
      const inner = this.expression();
      this.take(")");
      return inner;
    }
    if (token === "{") {
      const items = [];
      while (this.peek() !== "}") items.push(this.expression()), this.peek() === "," && this.take();
      this.take("}");
      return { kind: "list", items };
    }
    if (/^\d/.test(token)) return { kind: "number", value: parseFloat(token) };
    if (/^"/.test(token)) return { kind: "text", value: token.slice(1, -1) };
    if (!/^[A-Za-z_]/.test(token ?? "")) throw new Error(`${token} was not expected`);
    return this.peek() === "(" ? { kind: "call", of: null, method: token, args: this.arguments() } :
                                 { kind: "name", name: token };
  }

  arguments() {
    const args = [];
    this.take("(");
    while (this.peek() !== ")") {
      args.push(this.expression());
      if (this.peek() === ",") this.take();
    }
    this.take(")");
    return args;
  }
}

/** A statement of a lesson: { target, op: "=", "+=" or "call", value: node, text }; null where it is another kind. */
function parsedStatement(text) {
  const body = text.replace(/^(?:if|for|while) \((?:[^()]|\([^()]*\))*\) /, "")
                   .replace(/^(?:const )?(?:Tile|Column|auto)&? /, "");
  const assigned = body.match(/^([A-Za-z_]\w*) (\+?=) (.*)$/);
  try {
    const parser = new Parser(assigned ? assigned[3] : body);
    const value = parser.expression();
    if (parser.peek() !== undefined && parser.peek() !== ",") return null;
    return assigned ? { target: assigned[1], op: assigned[2], value, text } : { target: null, op: "call", value, text };
  } catch {
    return null;
  }
}

/** The names that a lesson's variable may have as a tile: Qi holds Q, Oi O or O_acc, Z_P the dropped P or P. */
function tileNames(variable) {
  if (variable === "Z_P") return ["P dropped", "P"];
  const bare = variable.replace(/[ij]$/, "");
  return [variable, bare, `${bare}_acc`];
}

/** The statement that made a computing step's values. @returns null where the page can't read it */
function statementOf(trace, step) {
  if (!step.at) return null;
  const file = trace.files[step.at[0]];
  const parsed = statementsAt(file.lines, step.at[1]).map(parsedStatement).filter(Boolean);
  return parsed.find((s) => s.target && tileNames(s.target).includes(step.name)) ??
      parsed.find((s) => s.op === "call" || s.value.kind === "call") ?? null;
}

/** The source of a step's statement as it stands in the file, without comments. */
function sourceOf(trace, step) {
  if (!step.at) return "";
  return statementsAt(trace.files[step.at[0]].lines, step.at[1]).join("; ");
}
