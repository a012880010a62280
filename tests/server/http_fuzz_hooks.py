"""What schemathesis checks of each answer besides its conformance to the schema; see http_fuzz."""
import schemathesis


@schemathesis.check
def no_internal_error(ctx, response, case):
    """501, 503 and 504 have meanings (docs/http.md); 500 is a fault of the server."""
    assert response.status_code != 500, "the server failed"
