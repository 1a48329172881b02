"""All endpoints of the API: routes, the OpenAPI document and the types of the page come from this table."""

from bertology.server.corpus_endpoints import CORPUS_ENDPOINTS
from bertology.server.job_endpoints import JOB_ENDPOINTS
from bertology.server.live_endpoints import LIVE_ENDPOINTS

ENDPOINTS = (*LIVE_ENDPOINTS, *CORPUS_ENDPOINTS, *JOB_ENDPOINTS)
