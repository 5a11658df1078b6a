"""./dev mcp: the official SDK as a client of `stageline mcp`, in both eras. Needs a Python that has PyPI's mcp (STAGELINE_MCP_PYTHON, or the
environment that ./dev mcp makes); run with it: mcp_sdk.py STAGELINE. Prints a closing line with the counts; without the SDK one test is skipped."""
import asyncio
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / 'tests/golden'
PROFILE = GOLDEN / 'readers/kineto/input'
HANDSHAKE, ENVELOPE = '2025-11-25', '2026-07-28'


def told(result):
    return result.structured_content if hasattr(result, 'structured_content') else result.structuredContent


def failed(result):
    return result.is_error if hasattr(result, 'is_error') else result.isError


async def talk(ask, program):
    """The same conversation, whatever the era; `ask(tool, arguments)`."""
    opened = told(await ask('open', {'paths': [str(PROFILE)]}))
    assert opened['trace'] == 't1', opened
    count = told(await ask('sql', {'trace': 't1', 'query': 'SELECT count(*), sum(dur_ns) FROM kernels'}))
    own = json.loads(subprocess.run([program, 'sql', PROFILE, 'SELECT count(*), sum(dur_ns) FROM kernels', '--format', 'json', '-q'], capture_output=True, check=True).stdout)
    assert count['rows'] == own['rows'], count
    claims = [{'text': 'kernels', 'handle': count['handle'], 'expect': {'value': own['rows'][0][0]}}]
    assert told(await ask('verify', {'trace': 't1', 'claims': claims}))['claims'][0]['verdict'] == 'holds'
    assert told(await ask('ask', {'trace': 't1', 'analysis': 'waterfall'}))['cannot_answer']
    wrong = await ask('sql', {'trace': 't1', 'query': 'SELECT durns FROM kernels'})
    assert failed(wrong) and 'dur_ns' in told(wrong)['hint'], wrong
    assert failed(await ask('open', {'paths': ['/etc/passwd']}))


async def handshake(program):
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client
    async with stdio_client(StdioServerParameters(command=program, args=['mcp', '--root', str(GOLDEN)])) as (read, write):
        async with ClientSession(read, write) as session:
            first = await session.initialize()
            assert (getattr(first, 'protocol_version', None) or first.protocolVersion) == HANDSHAKE, first
            assert len((await session.list_tools()).tools) == 8
            await talk(lambda tool, arguments: session.call_tool(tool, arguments), program)


async def envelope(program):
    from mcp import StdioServerParameters
    from mcp.client import Client
    async with Client(StdioServerParameters(command=program, args=['mcp', '--root', str(GOLDEN)]), mode=ENVELOPE) as client:
        assert len((await client.list_tools()).tools) == 8
        await talk(lambda tool, arguments: client.call_tool(tool, arguments), program)


def main(program):
    try:
        import mcp  # noqa: F401
    except ImportError:
        print('0 passed, 0 failed, 2 skipped (no mcp in this Python)')
        return 0
    passed = 0
    for one in (handshake, envelope):
        try:
            asyncio.run(asyncio.wait_for(one(program), 120))
            passed += 1
        except BaseException as error:  # noqa: BLE001 groups of errors, too
            inner = error
            while getattr(inner, 'exceptions', None):
                inner = inner.exceptions[0]
            print(f'FAILED {one.__name__}: {type(inner).__name__}: {inner}')
    print(f'{passed} passed, {2 - passed} failed')
    return passed != 2


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
