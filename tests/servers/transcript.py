"""Whether a chat-completions request is one that a strict provider accepts: the reason why not, or None."""

import re

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def fault(request):
    if not isinstance(request, dict):
        return "the request is no object"
    if not isinstance(request.get("model"), str) or not request["model"]:
        return "model is no text"
    messages = request.get("messages")
    if not isinstance(messages, list) or not messages:
        return "messages is no list, or empty"
    return tools_fault(request) or messages_fault(messages)


def tools_fault(request):
    if "tools" not in request:
        return None
    tools = request["tools"]
    if not isinstance(tools, list) or not tools:
        return "tools is no list, or empty"
    names = set()
    for tool in tools:
        if not isinstance(tool, dict) or set(tool) != {"type", "function"} or tool["type"] != "function":
            return "a tool is not {type: function, function}"
        function = tool["function"]
        name = function.get("name")
        if not isinstance(name, str) or not NAME.fullmatch(name):
            return f"a tool has the name {name!r}"
        if name in names:
            return f"the tool {name} is offered twice"
        names.add(name)
        if not isinstance(function.get("description", ""), str):
            return f"the description of {name} is no text"
        if not isinstance(function.get("parameters", {}), dict):
            return f"the parameters of {name} are no object"
    return None


def messages_fault(messages):
    unanswered = []
    for place, message in enumerate(messages):
        if not isinstance(message, dict):
            return f"message {place} is no object"
        role = message.get("role")
        if role == "tool":
            answered = message.get("tool_call_id")
            if not unanswered or answered != unanswered[0]:
                expected = unanswered[0] if unanswered else "no answer"
                return f"message {place} answers {answered!r} where {expected!r} is due"
            if not isinstance(message.get("content"), str):
                return f"message {place} has a content that is no text"
            unanswered.pop(0)
            continue
        if unanswered:
            return f"message {place} stands where the answer to {unanswered[0]!r} is due"
        if role in ("system", "developer", "user"):
            if not isinstance(message.get("content"), (str, list)) or not message["content"]:
                return f"message {place} has no content"
        elif role == "assistant":
            reason = assistant_fault(message)
            if reason:
                return f"message {place} {reason}"
            unanswered = [call["id"] for call in message.get("tool_calls") or []]
        else:
            return f"message {place} has the role {role!r}"
    if unanswered:
        return f"the answer to {unanswered[0]!r} is missing at the end"
    return None


def assistant_fault(message):
    calls = message.get("tool_calls")
    if calls is None:
        return None if isinstance(message.get("content"), str) else "has neither content nor tool calls"
    if not isinstance(calls, list) or not calls:
        return "has tool_calls that are no list, or empty"
    ids = set()
    for call in calls:
        if not isinstance(call, dict) or call.get("type") != "function":
            return "has a tool call that is no function"
        if not isinstance(call.get("id"), str) or not call["id"] or call["id"] in ids:
            return f"has a tool call with the id {call.get('id')!r}, missing or used twice"
        ids.add(call["id"])
        function = call.get("function")
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            return "has a tool call without a function name"
        if not isinstance(function.get("arguments"), str):
            return "has a tool call whose arguments are no text"
    return None
